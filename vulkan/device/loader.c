#include "vulkan/device/loader.h"

#include <dlfcn.h>
#include <string.h>

/* The system's Vulkan loader, which finds the drivers. */
#define LIBRARY "libvulkan.so.1"

/* A function from a symbol: ISO C has no cast for it. */
static PFN_vkGetInstanceProcAddr entry_point(void *library) {
    void *const symbol = dlsym(library, "vkGetInstanceProcAddr");
    PFN_vkGetInstanceProcAddr function = NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static hstep_status missing(const char *name, hstep_error *error) {
    return hs_fail(error, HSTEP_ERROR_BACKEND_UNAVAILABLE, "the system's Vulkan lacks the function vk%s", name);
}

static hstep_status load_instance_functions(hs_vk_instance *instance, PFN_vkGetInstanceProcAddr find,
                                            hstep_error *error) {
#define LOAD(name)                                                                                                     \
    instance->name = (PFN_vk##name)find(instance->handle, "vk" #name);                                                 \
    if (!instance->name)                                                                                               \
        return missing(#name, error);
    HS_VK_INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
    return HSTEP_OK;
}

hstep_status hs_vk_functions_load(const hs_vk_instance *instance, VkDevice device, hs_vk_functions *functions,
                                  hstep_error *error) {
#define LOAD(name)                                                                                                     \
    functions->name = (PFN_vk##name)instance->GetDeviceProcAddr(device, "vk" #name);                                   \
    if (!functions->name)                                                                                              \
        return missing(#name, error);
    HS_VK_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
    return HSTEP_OK;
}

static hstep_status create_instance(hs_vk_instance *instance, PFN_vkGetInstanceProcAddr find, hstep_error *error) {
    const PFN_vkCreateInstance create = (PFN_vkCreateInstance)find(NULL, "vkCreateInstance");
    const PFN_vkEnumerateInstanceVersion version =
        (PFN_vkEnumerateInstanceVersion)find(NULL, "vkEnumerateInstanceVersion");
    uint32_t found = VK_API_VERSION_1_0;
    if (version)
        (void)version(&found);
    HS_RETURN_IF(!create || found < VK_API_VERSION_1_2, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "the system's Vulkan loader is older than Vulkan 1.2");
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pApplicationName = "halfstep",
                                           .pEngineName = "halfstep",
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    const VkResult result = create(&info, NULL, &instance->handle);
    HS_RETURN_IF(result != VK_SUCCESS, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "no Vulkan driver could be started (VkResult %d); is one installed?", (int)result);
    return HSTEP_OK;
}

hstep_status hs_vk_instance_open(hs_vk_instance *instance, hstep_error *error) {
    *instance = (hs_vk_instance){.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)};
    HS_RETURN_IF(!instance->library, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "this system has no Vulkan (" LIBRARY " is not installed); choose another backend");
    const PFN_vkGetInstanceProcAddr find = entry_point(instance->library);
    instance->find = find;
    hstep_status status = find ? create_instance(instance, find, error) : missing("GetInstanceProcAddr", error);
    if (status == HSTEP_OK)
        status = load_instance_functions(instance, find, error);
    if (status != HSTEP_OK)
        hs_vk_instance_close(instance);
    return status;
}

void hs_vk_instance_close(hs_vk_instance *instance) {
    if (instance->handle && instance->DestroyInstance)
        instance->DestroyInstance(instance->handle, NULL);
    if (instance->library)
        (void)dlclose(instance->library);
    *instance = (hs_vk_instance){0};
}
