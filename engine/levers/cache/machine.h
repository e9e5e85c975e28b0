#ifndef HS_ENGINE_LEVERS_CACHE_MACHINE_H
#define HS_ENGINE_LEVERS_CACHE_MACHINE_H

#include <stdio.h>

#include "engine/backend.h"

/* Room for a description of a processor, and of all that a lever's figures depend on in a machine. */
enum { HS_MACHINE = 160, HS_LEVER_MACHINE = 800 };

/*
 * The processor as the system lists it (/proc/cpuinfo): vendor, family, model, stepping, and a checksum of everything
 * that it says it can do. "unknown processor" where `listing` is NULL or says nothing of the kind.
 */
void hs_machine_describe(FILE *listing, char text[HS_MACHINE]);

/* The device, the processor, and what stands behind the lever. */
void hs_lever_machine(const hs_backend *backend, const char *identity, char text[HS_LEVER_MACHINE]);

#endif
