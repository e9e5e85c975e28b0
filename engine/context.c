/* The one file of the engine that names the backends. */
#include "engine/context.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/error.h"
#include "vulkan/create.h"

hstep_context_options hstep_context_defaults(void) {
    return (hstep_context_options){.backend = HSTEP_BACKEND_AUTO, .threads = 0, .levers = "exact"};
}

hstep_status hs_context_adopt(hs_backend *backend, hs_backend *reference, hstep_context **context, hstep_error *error) {
    hstep_context *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "a context");
    made->backend = backend;
    made->reference = reference;
    hs_levers_copy(backend, &made->levers);
    *context = made;
    return HSTEP_OK;
}

/* A GPU where one will do. Levers that are named are the processor's, and so is plain C. */
static bool takes_gpu(const hstep_context_options *options, hs_backend **backend) {
    const char *levers = options->levers != NULL ? options->levers : "exact";
    if (strcmp(levers, "exact") != 0 && strcmp(levers, "auto") != 0)
        return false;
    return hs_vulkan_create(&(hs_vulkan_choice){.automatic = true}, backend, NULL) == HSTEP_OK;
}

static hstep_status create_backend(const hstep_context_options *options, hs_backend **backend, hstep_error *error) {
    switch (options->backend) {
    case HSTEP_BACKEND_AUTO:
        if (takes_gpu(options, backend))
            return HSTEP_OK;
        return hs_cpu_create(options->threads, backend, error);
    case HSTEP_BACKEND_CPU:
        return hs_cpu_create(options->threads, backend, error);
    case HSTEP_BACKEND_CPU_REFERENCE:
        return hs_cpu_reference_create(backend, error);
    case HSTEP_BACKEND_VULKAN:
        return hs_vulkan_create(&(hs_vulkan_choice){.device = options->device}, backend, error);
    }
    return hs_fail(error, HSTEP_ERROR_ARGUMENT, "unknown backend %d; choose one of hstep_backend",
                   (int)options->backend);
}

static hstep_status choose_levers(hstep_context *context, const hstep_context_options *options, hstep_error *error) {
    const hs_lever_request request = {.selection = options->levers,
                                      .products = options->products,
                                      .product_count = options->product_count,
                                      .judge_anew = options->judge_anew != 0};
    return hs_levers_choose(context->backend, &request, &context->levers, error);
}

hstep_status hstep_context_create(const hstep_context_options *options, hstep_context **context, hstep_error *error) {
    HS_RETURN_IF(context == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_context_create: no place for the context");
    const hstep_context_options defaults = hstep_context_defaults();
    hs_backend *backend = NULL;
    hstep_context *made = NULL;
    HS_FORWARD(create_backend(options != NULL ? options : &defaults, &backend, error));
    hstep_status status = hs_context_adopt(backend, NULL, &made, error);
    if (status != HSTEP_OK) {
        backend->api->destroy(backend);
        return status;
    }
    status = choose_levers(made, options != NULL ? options : &defaults, error);
    if (status != HSTEP_OK)
        hstep_context_destroy(made);
    else
        *context = made;
    return status;
}

void hstep_context_destroy(hstep_context *context) {
    if (context == NULL)
        return;
    if (context->reference != NULL && context->reference != context->backend)
        context->reference->api->destroy(context->reference);
    hs_lever_table_free(&context->levers);
    context->backend->api->destroy(context->backend);
    free(context);
}

hstep_status hs_context_reference(hstep_context *context, hs_backend **reference, hstep_error *error) {
    if (context->reference == NULL) {
        if (context->backend->api->locate != NULL)
            context->reference = context->backend;
        else
            HS_FORWARD(hs_cpu_reference_create(&context->reference, error));
    }
    *reference = context->reference;
    return HSTEP_OK;
}

hstep_status hstep_devices_list(hstep_device **devices, size_t *count, hstep_error *error) {
    HS_RETURN_IF(devices == NULL || count == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_devices_list needs places for the devices and their number");
    return hs_vulkan_list(devices, count, error);
}

void hstep_devices_free(hstep_device *devices) { free(devices); }

const char *hstep_context_backend_name(const hstep_context *context) { return context->backend->api->name; }

const char *hstep_context_device_name(const hstep_context *context) {
    return context->backend->api->device(context->backend);
}

unsigned hstep_context_threads(const hstep_context *context) {
    return context->backend->api->threads(context->backend);
}

void hstep_context_use_one_thread(hstep_context *context, int one) {
    if (context->backend->api->use_one_thread == NULL)
        return;
    context->backend->api->use_one_thread(context->backend, one != 0);
    context->one_thread = one != 0;
}

size_t hstep_context_memory(const hstep_context *context) { return context->backend->api->held(context->backend); }

size_t hstep_context_levers(const hstep_context *context, const hstep_lever **levers) {
    *levers = context->levers.levers;
    return context->levers.count;
}

const char *hstep_context_lever_set(const hstep_context *context) { return context->levers.pin; }
