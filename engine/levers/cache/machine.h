#ifndef HS_ENGINE_LEVERS_CACHE_MACHINE_H
#define HS_ENGINE_LEVERS_CACHE_MACHINE_H

#include <stdio.h>

/* Room for a description. */
enum { HS_MACHINE = 160 };

/*
 * The processor as the system lists it (/proc/cpuinfo): vendor, family, model, stepping, and a checksum of everything
 * that it says it can do. "unknown processor" where `listing` is NULL or says nothing of the kind.
 */
void hs_machine_describe(FILE *listing, char text[HS_MACHINE]);

#endif
