/* The one file of the engine that names the backends. */
#include "engine/context.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/error.h"
#include "engine/log.h"
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

/* A GPU where one will do. Whoever names levers of a GPU names the backend too, and plain C is the processor's. */
static bool takes_gpu(const hstep_context_options *options, hs_backend **backend) {
    const char *levers = options->levers != NULL ? options->levers : "exact";
    hstep_error why = {0};
    if (strcmp(levers, "exact") != 0 && strcmp(levers, "auto") != 0)
        return false;
    if (hs_vulkan_create(&(hs_vulkan_choice){.automatic = true}, backend, &why) == HSTEP_OK)
        return true;
    const hs_messages log = {options->log, options->log_user};
    hs_say(&log, HSTEP_LOG_NOTE, "the processor computes, no GPU: %s", why.message);
    return false;
}

static hstep_status check_allocator(const hstep_allocator *allocator, hstep_error *error) {
    HS_RETURN_IF(allocator != NULL && (allocator->allocate == NULL || allocator->release == NULL), error,
                 HSTEP_ERROR_ARGUMENT, "the context's allocator lacks a function; give both, or no allocator");
    return HSTEP_OK;
}

static hstep_status create_on_processor(const hstep_context_options *options, hs_backend **backend,
                                        hstep_error *error) {
    HS_FORWARD(options->backend == HSTEP_BACKEND_CPU_REFERENCE ? hs_cpu_reference_create(backend, error)
                                                               : hs_cpu_create(options->threads, backend, error));
    if (options->allocator != NULL)
        hs_cpu_use_allocator(*backend, options->allocator);
    return HSTEP_OK;
}

static hstep_status create_backend(const hstep_context_options *options, hs_backend **backend, hstep_error *error) {
    switch (options->backend) {
    case HSTEP_BACKEND_AUTO:
        if (takes_gpu(options, backend))
            return HSTEP_OK;
        return create_on_processor(options, backend, error);
    case HSTEP_BACKEND_CPU:
    case HSTEP_BACKEND_CPU_REFERENCE:
        return create_on_processor(options, backend, error);
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
                                      .judge_anew = options->judge_anew != 0,
                                      .log = {options->log, options->log_user}};
    return hs_levers_choose(context->backend, &request, &context->levers, error);
}

hstep_status hstep_context_create(const hstep_context_options *options, hstep_context **context, hstep_error *error) {
    HS_RETURN_IF(context == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_context_create: no place for the context");
    const hstep_context_options defaults = hstep_context_defaults();
    const hstep_context_options *o = options != NULL ? options : &defaults;
    hs_backend *backend = NULL;
    hstep_context *made = NULL;
    HS_FORWARD(check_allocator(o->allocator, error));
    HS_FORWARD(create_backend(o, &backend, error));
    hstep_status status = hs_context_adopt(backend, NULL, &made, error);
    if (status != HSTEP_OK) {
        backend->api->destroy(backend);
        return status;
    }
    made->has_allocator = o->allocator != NULL;
    if (made->has_allocator)
        made->allocator = *o->allocator;
    status = choose_levers(made, o, error);
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
        if (context->backend->api->locate != NULL) {
            context->reference = context->backend;
        } else {
            HS_FORWARD(hs_cpu_reference_create(&context->reference, error));
            if (context->has_allocator)
                hs_cpu_use_allocator(context->reference, &context->allocator);
        }
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

int hstep_context_work(const hstep_context *context, hstep_work *work) {
    if (context->backend->api->work == NULL)
        return 0;
    context->backend->api->work(context->backend, work);
    return 1;
}

size_t hstep_context_levers(const hstep_context *context, const hstep_lever **levers) {
    *levers = context->levers.levers;
    return context->levers.count;
}

const char *hstep_context_lever_set(const hstep_context *context) { return context->levers.pin; }
