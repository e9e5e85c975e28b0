/* The fixture's loss and gradients in the selected precision against those in f64. */
#include <math.h>
#include <stdlib.h>

#include "trainer/demonstration/fixture.h"
#include "trainer/demonstration/parts.h"
#include "trainer/exit.h"
#include "trainer/report.h"

/* Loss and gradients of the untrained fixture; the scale is 1, so that gradients come out as they are. */
static hstep_status differentiate(hs_fixture *fixture, hstep_precision precision, double *loss) {
    const hstep_scaler unscaled = {.initial = 1, .minimum = 1, .maximum = 1, .growth_interval = 2000};
    hstep_status status = hs_fixture_create(fixture, precision, &unscaled);
    if (status == HSTEP_OK)
        status = hstep_trainer_record(fixture->trainer, &fixture->batch, loss, &fixture->error);
    if (status == HSTEP_OK)
        status = hstep_trainer_backward(fixture->trainer, &fixture->error);
    return status;
}

static double largest(const double *values, size_t count) {
    double result = 0;
    for (size_t i = 0; i < count; i++)
        result = fmax(result, fabs(values[i]));
    return result;
}

static json_t *shape_of(const hstep_parameter *parameter) {
    json_t *shape = json_array();
    for (size_t i = 0; i < parameter->rank; i++)
        hs_append(&shape, json_integer((json_int_t)parameter->dims[i]));
    return shape;
}

/* Appends one tensor's comparison; room holds twice the elements of the largest tensor. */
static hstep_status compare_tensor(hs_fixture *selected, hs_fixture *reference, size_t index, double *room,
                                   json_t **tensors) {
    hstep_parameter parameter;
    hstep_status status = hstep_model_parameter(selected->model, index, &parameter, &selected->error);
    if (status != HSTEP_OK)
        return status;
    double *ours = room, *theirs = room + parameter.elements;
    status = hstep_trainer_read_gradient(selected->trainer, index, ours, &selected->error);
    if (status == HSTEP_OK)
        status = hstep_trainer_read_gradient(reference->trainer, index, theirs, &selected->error);
    if (status != HSTEP_OK)
        return status;
    const double ours_largest = largest(ours, parameter.elements);
    const double theirs_largest = largest(theirs, parameter.elements);
    for (size_t i = 0; i < parameter.elements; i++)
        ours[i] -= theirs[i];
    hs_append(tensors, json_pack("{s:s, s:o, s:f, s:f, s:f}", "name", parameter.name, "shape", shape_of(&parameter),
                                 "largest_absolute_gradient", ours_largest, "largest_absolute_gradient_f64",
                                 theirs_largest, "largest_absolute_difference", largest(ours, parameter.elements)));
    return HSTEP_OK;
}

/*
 * Whether the head reads the embedding table: changing the table's row of a token that the text does not hold must
 * change that token's logits and no others, and no second parameter of the table's shape may stand beside it.
 */
static hstep_status find_tied_table(hs_fixture *fixture, double *room, int *tied) {
    enum { OTHER = 'z' + 2, LOGITS = HS_FIXTURE_TOKENS * HS_FIXTURE_VOCABULARY };
    double before[LOGITS], after[LOGITS];
    hstep_error *error = &fixture->error;
    size_t tables = 0;
    for (size_t i = 0; i < hstep_model_parameter_count(fixture->model); i++) {
        hstep_parameter parameter;
        const hstep_status status = hstep_model_parameter(fixture->model, i, &parameter, error);
        if (status != HSTEP_OK)
            return status;
        tables += parameter.rank == 2 && parameter.dims[0] == HS_FIXTURE_VOCABULARY;
    }
    const size_t table = hstep_model_find_parameter(fixture->model, "token_embedding.weight");
    hstep_status status = hstep_model_output(fixture->model, &fixture->batch, before, error);
    if (status == HSTEP_OK)
        status = hstep_model_read_parameter(fixture->model, table, room, error);
    for (size_t i = 0; i < HS_FIXTURE_WIDTH; i++)
        room[OTHER * HS_FIXTURE_WIDTH + i] += 1;
    if (status == HSTEP_OK)
        status = hstep_model_write_parameter(fixture->model, table, room, error);
    if (status == HSTEP_OK)
        status = hstep_model_output(fixture->model, &fixture->batch, after, error);
    if (status != HSTEP_OK)
        return status;
    *tied = tables == 1;
    for (size_t i = 0; i < LOGITS; i++)
        *tied = *tied && (before[i] != after[i]) == (i % HS_FIXTURE_VOCABULARY == OTHER);
    return HSTEP_OK;
}

static json_t *token_list(const int32_t *tokens) { return json_pack("[i, i, i]", tokens[0], tokens[1], tokens[2]); }

static int compare(hs_fixture *selected, hs_fixture *reference, double loss, double loss_f64, double *room,
                   json_t *record) {
    const size_t count = hstep_model_parameter_count(selected->model);
    json_t *tensors = json_array();
    hstep_status status = HSTEP_OK;
    for (size_t i = 0; i < count && status == HSTEP_OK; i++)
        status = compare_tensor(selected, reference, i, room, &tensors);
    int tied = 0;
    if (status == HSTEP_OK)
        status = find_tied_table(selected, room, &tied);
    if (status != HSTEP_OK) {
        json_decref(tensors);
        return hs_report_error(&selected->error);
    }
    return hs_put_part(record, "text_reference",
                       json_pack("{s:s, s:o, s:o, s:f, s:f, s:I, s:I, s:b, s:o}", "text", "ab", "inputs",
                                 token_list(selected->batch.tokens), "targets", token_list(selected->batch.targets),
                                 "loss", loss, "loss_f64", loss_f64, "gradient_tensors", (json_int_t)count,
                                 "learned_scalars", (json_int_t)hstep_model_scalar_count(selected->model), "tied_table",
                                 tied, "gradients", tensors));
}

int hs_demonstrate_text_reference(hstep_precision precision, json_t *record) {
    hs_fixture selected, reference = {.context = NULL};
    double loss = 0, loss_f64 = 0;
    int status;
    double *room = NULL;
    if (differentiate(&selected, precision, &loss) != HSTEP_OK)
        status = hs_report_error(&selected.error);
    else if (differentiate(&reference, HSTEP_PRECISION_F64, &loss_f64) != HSTEP_OK)
        status = hs_report_error(&reference.error);
    else if ((room = calloc(2 * hstep_model_scalar_count(selected.model), sizeof *room)) == NULL)
        status = hs_put_part(record, "text_reference", NULL);
    else
        status = compare(&selected, &reference, loss, loss_f64, room, record);
    free(room);
    hs_fixture_destroy(&reference);
    hs_fixture_destroy(&selected);
    return status;
}
