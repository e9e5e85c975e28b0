#!/usr/bin/env bash
# The programs given, under the Vulkan validation layer with synchronisation validation and the tracker of objects: it
# must have nothing to say. It must have something to say about the first, which breaks the rules.
# usage: [VULKAN_DRIVER=FOLDER] validation.sh FAULTY PROGRAM...        FOLDER: one of tools/vulkan-driver.sh
set -euo pipefail

run=()
if [[ -n ${VULKAN_DRIVER:-} ]]; then
    run=("$(dirname "${BASH_SOURCE[0]}")/../../tools/vulkan-driver.sh" "$VULKAN_DRIVER" --run)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/vk_layer_settings.txt" <<'SETTINGS'
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf
khronos_validation.log_filename = stdout
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
khronos_validation.enable_message_limit = false
SETTINGS
export VK_LAYER_SETTINGS_PATH="$work/vk_layer_settings.txt"
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LOADER_DEBUG=layer

# under_validation PROGRAM ARGUMENT...: what it prints goes to $work/out, what the layer says of it to $work/said.
under_validation() {
    local status=0
    "${run[@]}" "$@" >"$work/out" 2>&1 || status=$?
    if [[ $status -eq 77 && ${#run[@]} -gt 0 ]]; then
        tail -n 1 "$work/out"
        exit 77
    elif [[ $status -ne 0 ]]; then
        tail -n 40 "$work/out"
        printf '%s fails under the validation layer\n' "$1"
        exit 1
    elif ! grep -q 'Insert instance layer "VK_LAYER_KHRONOS_validation"' "$work/out"; then
        printf 'skipped: the Vulkan validation layer is not installed\n'
        exit 77
    fi
    grep -E 'VUID-|SYNC-|UNASSIGNED-|Validation (Error|Warning|Performance)' "$work/out" >"$work/said" || true
}

under_validation "$1"
for rule in SYNC-HAZARD-WRITE 'ObjectLeak|VUID-vkDestroyDevice-device'; do
    if ! grep -Eq "$rule" "$work/said"; then
        cat "$work/said"
        printf 'The validation layer does not notice what it has to (%s).\n' "$rule"
        exit 1
    fi
done
for program in "${@:2}"; do
    under_validation "$program" --jobs=1
    if [[ -s $work/said ]]; then
        sort "$work/said" | uniq -c | head -n 20
        printf 'The validation layer objects to what %s does.\n' "$program"
        exit 1
    fi
done
