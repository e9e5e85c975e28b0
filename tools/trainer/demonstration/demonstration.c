#include "trainer/demonstration.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/demonstration/parts.h"
#include "trainer/exit.h"
#include "trainer/report.h"

int hs_put_part(json_t *record, const char *name, json_t *value) {
    if (json_object_set_new(record, name, value) == 0)
        return HS_EXIT_DONE;
    hs_report("no memory for %s of the demonstration record", name);
    return HS_EXIT_UNAVAILABLE;
}

void hs_append(json_t **list, json_t *value) {
    if (json_array_append_new(*list, value) == 0)
        return;
    json_decref(*list);
    *list = NULL;
}

int hs_demonstrate_dtypes(hstep_precision precision, json_t *record) {
    static const char *const operands[] = {
        [HSTEP_PRECISION_F64] = "f64", [HSTEP_PRECISION_FP16] = "fp16", [HSTEP_PRECISION_BF16] = "bf16"};
    const char *accumulator = precision == HSTEP_PRECISION_F64 ? "f64" : "f32";
    return hs_put_part(record, "dtypes",
                       json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "host_storage", "f64", "matmul_operands",
                                 operands[precision], "matmul_accumulator", accumulator, "matmul_result",
                                 operands[precision], "master_weights", "f64", "adamw_moments", "f64"));
}

static int fill(hstep_precision precision, json_t *record) {
    int status = hs_put_part(record, "schema", json_string("halfstep.demonstration/1"));
    if (status == HS_EXIT_DONE)
        status = hs_put_part(record, "precision", json_string(hstep_precision_name(precision)));
    if (status == HS_EXIT_DONE)
        status = hs_demonstrate_dtypes(precision, record);
    if (status == HS_EXIT_DONE)
        status = hs_demonstrate_representation(record);
    if (status == HS_EXIT_DONE)
        status = hs_demonstrate_finite_updates(precision, record);
    if (status == HS_EXIT_DONE)
        status = hs_demonstrate_text_reference(precision, record);
    if (status == HS_EXIT_DONE)
        status = hs_demonstrate_clipping(record);
    if (status == HS_EXIT_DONE)
        status = hs_demonstrate_overflow(record);
    return status;
}

/*
 * The record as text, to be freed; NULL where memory ran out. Into a buffer of the right size, since json_dumps can
 * lose a character of a key when its own buffer cannot grow, and says nothing.
 */
static char *format(const json_t *record, size_t *size) {
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(17);
    *size = json_dumpb(record, NULL, 0, flags);
    char *text = *size == 0 ? NULL : malloc(*size + 1);
    if (text != NULL && json_dumpb(record, text, *size, flags) == *size) {
        text[(*size)++] = '\n';
        return text;
    }
    free(text);
    return NULL;
}

/* The whole text is made before any of it is written, so that no part of a record is ever seen alone. */
static int print(const json_t *record, FILE *out) {
    size_t size;
    char *text = format(record, &size);
    if (text == NULL)
        return hs_report_no_memory();
    const bool written = fwrite(text, 1, size, out) == size && fflush(out) == 0;
    const int reason = errno;
    free(text);
    if (written)
        return HS_EXIT_DONE;
    hs_report("cannot write the demonstration record: %s", strerror(reason));
    return HS_EXIT_OUTPUT;
}

int demonstration_run(hstep_precision precision, FILE *out) {
    json_t *record = json_object();
    int status = fill(precision, record);
    if (status == HS_EXIT_DONE)
        status = print(record, out);
    json_decref(record);
    return status;
}
