/* The C interface, under the name that the C++ headers have as well. */
#include "../isohalo.h"
