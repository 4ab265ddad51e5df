#pragma once
/// isohalo::collectives - collectives through the shared memory of compute nodes, and between these.
#include "framework/shm/cluster_collectives.hpp"
