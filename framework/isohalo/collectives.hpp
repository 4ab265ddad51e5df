#pragma once
/// isohalo::collectives - collectives in the shared memory of compute nodes: NodeCollectives for the ranks of one,
/// ClusterCollectives for those of several.
#include "framework/shm/cluster_collectives.hpp"
#include "framework/shm/collectives.hpp"
