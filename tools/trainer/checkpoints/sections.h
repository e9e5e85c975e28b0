/*
 * Sections of what a run saves: "configuration" (every option), "data" (position in the data, and what the data is),
 * "levers" (what computed), and "run" (counts that stand in records, and where records go on).
 */
#ifndef HS_TRAINER_SECTIONS_H
#define HS_TRAINER_SECTIONS_H

#include <jansson.h>

#include <halfstep/checkpoint.h>

#include "trainer/train/run.h"

/* Room for those of a run and for those of an attempt that is kept. */
enum { HS_SECTIONS_MOST = 8 };

typedef struct hs_sections {
    hstep_section items[HS_SECTIONS_MOST];
    size_t count;
} hs_sections;

/* The sections of a run. Whatever it returns, hs_sections_free. */
hstep_status hs_sections_collect(const hs_run *run, bool finished, hs_sections *sections, hstep_error *error);

/* Takes over `data`, from malloc, or the value; false without memory, which data of NULL stands for. */
bool hs_sections_add(hs_sections *sections, const char *name, void *data, size_t size);
bool hs_sections_add_json(hs_sections *sections, const char *name, json_t *value);

void hs_sections_free(hs_sections *sections);

#endif
