#!/usr/bin/env bash
# The programs given, under the Vulkan validation layer with synchronisation validation: it must have nothing to say.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/vk_layer_settings.txt" <<'SETTINGS'
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf
khronos_validation.log_filename = stdout
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
SETTINGS
export VK_LAYER_SETTINGS_PATH="$work/vk_layer_settings.txt"
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LOADER_DEBUG=layer

for program in "$@"; do
    "$program" --jobs=1 >"$work/out" 2>&1 || {
        tail -n 40 "$work/out"
        printf '%s fails under the validation layer\n' "$program"
        exit 1
    }
    if ! grep -q 'Insert instance layer "VK_LAYER_KHRONOS_validation"' "$work/out"; then
        printf 'skipped: the Vulkan validation layer is not installed\n'
        exit 77
    fi
    if grep -E 'VUID-|SYNC-|UNASSIGNED-|Validation (Error|Warning|Performance)' "$work/out" | sort | uniq -c | head -n 20 |
        grep .; then
        printf 'The validation layer objects to what %s does.\n' "$program"
        exit 1
    fi
done
