#!/bin/bash
# What a machine with a GPU is asked, in one go of less than ten minutes: docs/vulkan.md ("A GPU, measured").
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'END'
Usage: tools/bench/gpu.sh [--device D] [--python P] [--build DIR | --built DIR] [--tiny]

Builds halfstep, then says what the Vulkan device is, what the probe finds, whether operations and whole runs have the
bits of the processor, which levers pass their gates, and how long an update of 124M parameters takes beside PyTorch on
the same GPU. Every part has a limit of its own, so that a device that hangs takes no other part along.

  --device D    a number or a part of a name, as of trainer train; without it the first device that is no processor
  --python P    a Python that has PyTorch with CUDA or ROCm; HALFSTEP_BENCH_PYTHON says it too. Without one PyTorch is
                left out
  --build DIR   where to build [build/gpu]
  --built DIR   take what was built there
  --tiny        the smallest model, few operations, no gates: whether the script itself works

Exit status: 0 the bits agree; 1 they do not, or that could not be found out; 2 usage.
END
}

# refuse WHAT: wrong arguments.
refuse() {
    printf 'gpu.sh: %s\n' "$1" >&2
    usage >&2
    exit 2
}

device= python=${HALFSTEP_BENCH_PYTHON:-$root/build/bench-python/bin/python} build=$root/build/gpu built= tiny= one=
while [ $# -gt 0 ]; do
    case $1 in
    --device | --python | --build | --built | --part)
        [ $# -gt 1 ] || refuse "$1 needs a value"
        case $1 in
        --device) device=$2 ;; --python) python=$2 ;; --build) build=$2 ;; --built) build=$2 built=1 ;; --part) one=$2 ;;
        esac
        shift 2 ;;
    --tiny) tiny=1; shift ;;
    --help) usage; exit 0 ;;
    *) refuse "$1: there is no such option" ;;
    esac
done

part_build() {
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >"$work/cmake.txt" 2>&1 || {
        tail -n 20 "$work/cmake.txt"
        return 1
    }
    # Without Criterion there are no tests.
    local targets="trainer bench_step" log=$work/ninja.txt
    ninja -C "$build" -t targets all 2>/dev/null | grep -q '^test_vulkan_operations:' &&
        targets="$targets test_vulkan_operations"
    ninja -C "$build" $targets >"$log" 2>&1 || { tail -n 20 "$log"; return 1; }
    tail -n 1 "$log"
}

part_facts() {
    uname -srm
    grep -m 1 'model name' /proc/cpuinfo
    nproc | sed 's/$/ processors/'
    command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    command -v rocm-smi >/dev/null && rocm-smi --showproductname --showdriverversion
    command -v vulkaninfo >/dev/null && vulkaninfo --summary 2>/dev/null | grep -E 'deviceName|driverName|driverInfo|apiVersion'
    "$trainer" levers --json >"$work/devices.json" || return 1
    python3 - "$work/devices.json" <<'END'
import json, sys
for device in json.load(open(sys.argv[1]))["devices"]:
    kind = "on the processor" if device["software"] else "GPU"
    print(f"device {device['number']}: {device['name']}, {device['driver']}, {kind} {device['refusal']}")
END
}

# train RECORDS OPTION...: a small run on a small text, with as good as no evaluation.
train() {
    local records=$1
    shift
    seq 2000 >"$work/text"
    "$trainer" train "$@" --data "$work/text" --levers exact --eval-every 0 --sample-tokens 0 --quiet --records "$records"
}

# Opens the device, which is tried then: the verdict stands in the first record.
part_probe() {
    train "$work/probe.jsonl" --backend vulkan --device "$device" --steps 1 --layers 1 --width 16 --heads 2 \
        --feed-forward 16 --context 8 --batch-size 2 || return 1
    python3 - "$work/probe.jsonl" <<'END'
import json, sys
run = json.loads(open(sys.argv[1]).readline())
print(run["device"])
mirror = [lever for lever in run["levers"] if lever["name"] == "vulkan.mirror"]
for lever in mirror:
    print(f"{lever['name']}: {lever['state']}: {lever['reason']}")
sys.exit(0 if mirror and mirror[0]["state"] == "active" else "no mirror: bits are promised on no such device")
END
}

# Levers with other bits: whether they pass, and win.
part_gates() {
    "$trainer" levers --backend vulkan --device "$device" --json >"$work/levers.json" || return 1
    python3 - "$work/levers.json" <<'END'
import json, sys
for lever in json.load(open(sys.argv[1]))["levers"]:
    print(f"{lever['name']}: {lever['state']}: {lever['reason']}")
    if lever.get("gate"):
        print("   ", json.dumps(lever["gate"].get("worst", lever["gate"])))
END
}

# Those that the training step is made of, with their whole list of shapes.
part_operations() {
    local test=$build/tests/test_vulkan_operations names='*'
    [ -x "$test" ] || { echo "it was not built: install Criterion (libcriterion-dev)"; return 1; }
    [ -z "$tiny" ] || names='@(ADAMW|ADD|GATHER_BACKWARD)'
    HALFSTEP_TEST_DEVICE=$device "$test" --timeout 100 -j4 --filter "operations/$names" >"$work/operations.txt" 2>&1
    local status=$?
    grep -v '^ *$' "$work/operations.txt" | tail -n 20
    return $status
}

# Twenty updates on the processor and on the device: the same losses, the same weights.
part_runs() {
    local wrong=0 precision backend size="--layers 2 --width 128 --heads 4 --feed-forward 384 --context 64 --batch-size 8"
    [ -z "$tiny" ] || size="--layers 1 --width 16 --heads 2 --feed-forward 16 --context 8 --batch-size 2 --threads 1"
    for precision in fp16 bf16 f64; do
        for backend in cpu vulkan; do
            local where=
            [ $backend = cpu ] || where="--device $device"
            train "$work/$backend.jsonl" $size --precision $precision --backend $backend $where --steps 20 || return 1
            grep -oE '"(loss|gradient_norm|weights_checksum)":[^,}]*' "$work/$backend.jsonl" >"$work/$backend.txt"
        done
        if cmp -s "$work/cpu.txt" "$work/vulkan.txt"; then
            echo "$precision: the same bits, $(grep weights_checksum "$work/cpu.txt")"
        else
            echo "$precision: OTHER BITS, first:" && diff "$work/cpu.txt" "$work/vulkan.txt" | head -n 4
            wrong=1
        fi
    done
    return $wrong
}

part_step() {
    local size=$2 repeats=9 levers="exact auto"
    [ -z "$tiny" ] || size=tiny repeats=3 levers=exact
    "$root/tools/bench/step.py" --gpu "$device" --build "$build" --python "$python" --sizes "$size" --repeats "$repeats" \
        --levers $levers --log "$work/$size.jsonl"
}

trainer=$build/bin/trainer
if [ -n "$one" ]; then
    work=$GPU_WORK
    "part_${one%:*}" x "${one#*:}"
    exit
fi

work=$(mktemp -d)
export GPU_WORK=$work
trap 'rm -rf "$work"' EXIT
summary= failed=0

# part NAME SECONDS NEEDED: runs it; one that is needed makes the script fail. Its programs end with it. A driver that
# computes on the processor gets more time.
part() {
    local status start=$SECONDS said=passed limit=$(($2 * (${tiny:-0} * 4 + 1)))
    printf '\n== %s (at most %s s)\n' "$1" "$limit"
    timeout -k 5 "$limit" "$BASH" "$0" --device "$device" --python "$python" --build "$build" ${tiny:+--tiny} --part "$1"
    status=$?
    [ $status = 0 ] || said="FAILED with status $status"
    [ $status != 124 ] && [ $status != 137 ] || said="OUT OF TIME"
    [ $status = 0 ] || [ "$3" != needed ] || failed=1
    summary+=$(printf '%-16s %-24s %4s s' "$1" "$said" $((SECONDS - start)))$'\n'
    return $status
}

# A device's number, of the first that computes by itself and can serve.
first_gpu() {
    python3 - "$work/devices.json" <<'END'
import json, sys
for device in json.load(open(sys.argv[1]))["devices"]:
    if not device["software"] and not device["refusal"]:
        print(device["number"])
        break
END
}

[ -n "$built" ] || part build 180 needed || exit 1
part facts 30 needed || exit 1
if [ -z "$device" ]; then
    device=$(first_gpu)
    [ -n "$device" ] || { echo "no GPU here that can serve: name a device by --device to try the script on it"; exit 1; }
fi
if part probe 30 needed; then
    part operations 90 needed
    part runs 70 needed
    [ -n "$tiny" ] || part gates 50 wanted
    part step:124m 60 wanted
    [ -n "$tiny" ] || part step:124m-2048 70 wanted
fi
printf '\n== Summary, device %s\n%s' "$device" "$summary"
exit $failed
