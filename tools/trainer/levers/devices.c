/* The Vulkan devices of this machine, beside the levers. */
#include "trainer/levers/levers.h"

#include <jansson.h>

static const char *serves(const hstep_device *device) {
    if (device->refusal[0] != '\0')
        return device->refusal;
    return device->software ? "computes on the processor; never taken by --backend auto" : "serves";
}

void hs_levers_print_devices(FILE *out) {
    hstep_device *devices = NULL;
    size_t count = 0;
    hstep_error error = {0};
    fputs("\nVulkan devices, for --backend vulkan --device N:\n", out);
    if (hstep_devices_list(&devices, &count, &error) != HSTEP_OK)
        fprintf(out, "none: %s\n", error.message);
    else if (count == 0)
        fputs("none\n", out);
    for (size_t i = 0; i < count; ++i)
        fprintf(out, "%zu  %s, %s: %s\n", i, devices[i].name, devices[i].driver, serves(&devices[i]));
    hstep_devices_free(devices);
}

json_t *hs_levers_devices_json(void) {
    hstep_device *devices = NULL;
    size_t count = 0;
    json_t *array = json_array();
    if (hstep_devices_list(&devices, &count, NULL) != HSTEP_OK)
        return array;
    for (size_t i = 0; i < count; ++i)
        json_array_append_new(array, json_pack("{s:i, s:s, s:s, s:b, s:s}", "number", (int)i, "name", devices[i].name,
                                               "driver", devices[i].driver, "software", devices[i].software, "refusal",
                                               devices[i].refusal));
    hstep_devices_free(devices);
    return array;
}
