#include "engine/records/trace.h"

#include <math.h>
#include <string.h>

/* A number of an attempt that may not have come to it: null alone where it did not. */
static void put_if(hs_record *record, json_t *object, bool there, const char *name, double value) {
    if (there)
        hs_put_number(record, object, name, value);
    else
        hs_put_null(record, object, name);
}

static void put_tensors(hs_record *record, json_t *object, const hstep_trace *trace) {
    json_t *array = hs_put_array(record, object, "tensors");
    const bool gradients = trace->has_gradients != 0, updates = trace->has_updates != 0;
    for (size_t i = 0; i < trace->tensor_count; i++) {
        const hstep_tensor_trace *row = &trace->tensors[i];
        json_t *tensor = hs_put_element(record, array);
        hs_put_text(record, tensor, "tensor", row->name);
        hs_put_number(record, tensor, "weight_norm", row->weight_norm);
        hs_put_number(record, tensor, "weight_largest", row->weight_largest);
        put_if(record, tensor, gradients, "gradient_norm", row->gradient_norm);
        put_if(record, tensor, gradients, "gradient_largest", row->gradient_largest);
        put_if(record, tensor, updates, "update_norm", row->update_norm);
        put_if(record, tensor, updates, "update_largest", row->update_largest);
        put_if(record, tensor, updates && row->weight_norm != 0, "update_ratio", row->update_ratio);
    }
}

static void put_operand(hs_record *record, json_t *array, const hstep_operand_trace *row) {
    json_t *operand = hs_put_element(record, array);
    hs_put_text(record, operand, "tensor", row->tensor);
    hs_put_boolean(record, operand, "adjoint", row->is_adjoint != 0);
    hs_put_integer(record, operand, "elements", row->elements);
    hs_put_number(record, operand, "largest", row->largest);
    hs_put_integer(record, operand, "to_zero", row->to_zero);
    hs_put_integer(record, operand, "to_subnormal", row->to_subnormal);
    hs_put_integer(record, operand, "to_infinity", row->to_infinity);
    hs_put_integer(record, operand, "nonfinite", row->nonfinite);
}

/* Rows of one operation follow each other. */
static void put_operations(hs_record *record, json_t *object, const hstep_trace *trace) {
    json_t *array = hs_put_array(record, object, "operations"), *operands = NULL;
    const hstep_operand_trace *last = NULL;
    for (size_t i = 0; i < trace->operand_count; i++) {
        const hstep_operand_trace *row = &trace->operands[i];
        if (last == NULL || strcmp(last->operation, row->operation) != 0 || last->precision != row->precision) {
            json_t *operation = hs_put_element(record, array);
            hs_put_text(record, operation, "operation", row->operation);
            hs_put_text(record, operation, "precision", hstep_precision_name(row->precision));
            operands = hs_put_array(record, operation, "operands");
        }
        put_operand(record, operands, row);
        last = row;
    }
}

void hs_put_trace(hs_record *record, const hstep_trace *trace) {
    json_t *object = hs_put_object(record, record->root, "trace");
    put_tensors(record, object, trace);
    put_operations(record, object, trace);
}
