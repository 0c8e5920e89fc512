// The host's view of Device.h: the table of functions and the tensor map, without the wrappers.
#pragma once

#define MOEJIT_EMULATOR_HOST
#include "runtime/emulator/Device.h"
