/*
 * Operands in 16 bits give the bits of f64 slots: every operation but products and attention, which have tests of their
 * own, with every set of operands that the backend says it takes.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "precision/format.h"
#include "support/parity.h"

/* The operands that may stand in 16 bits, by asking for each alone. */
static unsigned compact_operands(const hs_test_description *description) {
    hs_backend *cpu = NULL;
    cr_assert_eq(hs_cpu_create(1, &cpu, NULL), HSTEP_OK);
    unsigned operands = 0;
    for (unsigned bit = 0; bit < HS_MAX_INPUTS + HS_MAX_OUTPUTS; bit++) {
        hs_test_call *plain = hs_test_call_create(description);
        const bool output = bit >= HS_MAX_INPUTS;
        const unsigned i = output ? bit - HS_MAX_INPUTS : bit;
        hs_call call = plain->call;
        if (i < (output ? call.output_count : call.input_count)) {
            (output ? call.outputs : call.inputs)[i].dtype = HSTEP_DTYPE_BF16;
            operands |= cpu->api->supports(cpu, &call) ? 1U << bit : 0;
        }
        hs_test_call_destroy(plain);
    }
    cpu->api->destroy(cpu);
    return operands;
}

static void shape(hs_test_description *d, size_t rows, size_t columns, size_t pitch) {
    d->rows = rows;
    d->columns = columns;
    d->pitch = pitch;
    d->heads = d->kv_heads = 2;
    d->head_width = columns / 4 * 2 > 0 ? columns / 4 * 2 : 2;
    d->table = rows + 1;
}

/* All sets of `operands`, in both formats, on shapes around the pieces in which rows are widened. */
static void check_sets(hs_parity *parity, hs_test_description d, unsigned operands) {
    static const size_t shapes[][3] = {{3, 8, 0}, {5, 36, 3}, {2, 1028, 1}, {70, 132, 0}, {0, 4, 0}, {1, 4, 5}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (hstep_precision p = HSTEP_PRECISION_FP16; p <= HSTEP_PRECISION_BF16; p++)
            for (unsigned set = operands; set != 0; set = (set - 1) & operands) {
                shape(&d, shapes[s][0], shapes[s][1], shapes[s][2]);
                d.precision = p;
                d.compact = set;
                hs_parity_check(parity, &d, s == 0 ? HS_PARITY_FULL : HS_PARITY_BRIEF);
            }
}

Test(operations_compact, give_the_bits_of_f64_slots, .timeout = 120) {
    hs_parity parity;
    hs_parity_open(&parity);
    unsigned kinds = 0;
    for (hs_operation operation = 0; operation < HS_OP_COUNT; operation++) {
        const hs_test_description d = hs_test_describe(operation);
        const unsigned operands = hs_parity_has_products(operation) ? 0 : compact_operands(&d);
        parity.calls = parity.raised = 0;
        check_sets(&parity, d, operands);
        kinds += operands != 0;
        cr_assert(operands == 0 || parity.raised < parity.calls, "%s", hs_operation_name(operation));
    }
    cr_assert_geq(kinds, 10);
    hs_parity_close(&parity);
}

/* The sum may stand in the place of a compact operand, which is then of its format. */
Test(operations_compact, add_in_place) {
    hs_parity parity;
    hs_parity_open(&parity);
    hs_test_description d = hs_test_describe(HS_OP_ADD);
    d.in_place = true;
    d.precision = HSTEP_PRECISION_BF16;
    d.compact = HS_TEST_INPUT(0) | HS_TEST_OUTPUT(0);
    hs_parity_check(&parity, &d, HS_PARITY_FULL);
    hs_parity_close(&parity);
}

/* Q_h of a finite f64 may be infinite: that is no nonfinite value of the operation that stores it. */
Test(operations_compact, a_cast_that_overflows_raises_no_flag) {
    hs_parity parity;
    hs_parity_open(&parity);
    hs_test_description d = hs_test_describe(HS_OP_SCALE);
    d.precision = HSTEP_PRECISION_FP16;
    d.compact = HS_TEST_OUTPUT(0);
    d.factor = 1;
    hs_test_call *call = hs_test_call_create(&d);
    call->inputs[0].f64[0] = 65520;
    hs_test_result *result = hs_test_call_run_well(call, parity.exact[0][0]);
    cr_assert_eq(result->flag, 0);
    cr_assert_eq(result->outputs[0][0], (double)INFINITY);
    hs_test_result_destroy(result);
    hs_test_call_destroy(call);
    hs_parity_close(&parity);
}

static hs_view flat(hs_buffer *buffer, hstep_dtype dtype, size_t count) {
    return (hs_view){.buffer = buffer, .dtype = dtype, .rank = 1, .dims = {count}, .strides = {1}};
}

/* AdamW's own cast of the weights is the cast of what it leaves. */
static void check_adamw(hs_backend *cpu, hstep_dtype dtype, size_t count) {
    const size_t bytes = count * sizeof(double);
    double *w = calloc(count, sizeof *w), *after = calloc(count, sizeof *after);
    uint16_t *cast = calloc(count, sizeof *cast);
    const double scalars[HS_ADAMW_SCALARS] = {1, 1, 0.9, 0.999, 0.1, 1, 1e-8, 0.01};
    enum { GRADIENT = 4, SCALARS, BUFFERS }; /* behind the outputs */
    hs_buffer *buffers[BUFFERS];
    for (size_t i = 0; i < BUFFERS; i++)
        cr_assert_eq(cpu->api->buffer_create(cpu, i == SCALARS ? sizeof scalars : bytes, &buffers[i], NULL), HSTEP_OK);
    for (size_t i = 0; i < count; i++)
        w[i] = ((double)i - 7.5) * 0.37 / (double)count;
    (void)cpu->api->write(cpu, buffers[0], 0, w, bytes, NULL);
    (void)cpu->api->write(cpu, buffers[GRADIENT], 0, w, bytes, NULL);
    (void)cpu->api->write(cpu, buffers[SCALARS], 0, scalars, sizeof scalars, NULL);
    hs_call call = {.operation = HS_OP_ADAMW, .attributes = {.decay = true}, .input_count = 2, .output_count = 4};
    call.inputs[0] = flat(buffers[GRADIENT], HSTEP_DTYPE_F64, count);
    call.inputs[1] = flat(buffers[SCALARS], HSTEP_DTYPE_F64, HS_ADAMW_SCALARS);
    for (unsigned i = 0; i < 4; i++)
        call.outputs[i] = flat(buffers[i], i == HS_ADAMW_CAST ? dtype : HSTEP_DTYPE_F64, count);
    hs_program *program = NULL;
    cr_assert_eq(cpu->api->program_create(cpu, &call, 1, &program, NULL), HSTEP_OK);
    cr_assert_eq(hs_run_and_wait(cpu, program, 0, 1, NULL, NULL), HSTEP_OK);
    (void)cpu->api->read(cpu, buffers[0], 0, after, bytes, NULL);
    (void)cpu->api->read(cpu, buffers[HS_ADAMW_CAST], 0, cast, count * sizeof *cast, NULL);
    for (size_t i = 0; i < count; i++) {
        cr_assert_neq(after[i], w[i]);
        cr_assert_eq(cast[i], hs_encode(dtype == HSTEP_DTYPE_FP16 ? HSTEP_FP16 : HSTEP_BF16, after[i]), "weight %zu",
                     i);
    }
    cpu->api->program_destroy(cpu, program);
    for (size_t i = 0; i < BUFFERS; i++)
        cpu->api->buffer_destroy(cpu, buffers[i]);
    free(w);
    free(after);
    free(cast);
}

Test(operations_compact, adamw_casts_the_new_weights) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
        for (size_t threads = 0; threads < HS_TEST_THREADS && parity.exact[lever][threads] != NULL; threads++)
            for (size_t count = 1; count < 6000; count = count * 3 + 1) {
                check_adamw(parity.exact[lever][threads], HSTEP_DTYPE_FP16, count);
                check_adamw(parity.exact[lever][threads], HSTEP_DTYPE_BF16, count);
            }
    hs_parity_close(&parity);
}
