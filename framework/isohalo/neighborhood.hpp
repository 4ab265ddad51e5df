#pragma once
/// isohalo::halo - isomorphic neighborhoods and their collectives: IsoComm.
#include "framework/neighborhood/iso_comm.hpp"
