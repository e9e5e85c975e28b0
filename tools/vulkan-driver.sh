#!/usr/bin/env bash
# Fetches a newer Vulkan driver that computes on the processor, Mesa's lavapipe of Debian 13's backports, with loader,
# validation layers, headers and shader tools, into a folder of its own, and runs programs of this system against it.
# The system's packages stay as they are. The archive is the one that the system's own apt takes packages from.
set -euo pipefail

packages='mesa-vulkan-drivers libvulkan1 libvulkan-dev vulkan-validationlayers glslang-tools spirv-tools patchelf'
suites='trixie trixie-backports'
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

usage() {
    cat <<'USAGE'
usage: tools/vulkan-driver.sh [FOLDER]
           fetches the driver into FOLDER (build/vulkan-driver), where it is not there yet: about 450 MB
       tools/vulkan-driver.sh FOLDER --run PROGRAM [ARGUMENT...]
           runs a program against the driver in FOLDER: one of this system (a path), or one that was fetched along
           (a name: glslangValidator, spirv-val)
USAGE
}

fail() {
    printf 'vulkan-driver: %s\n' "$*" >&2
    exit 1
}

# refuse WHAT: wrong arguments.
refuse() {
    printf 'vulkan-driver: %s\n' "$1" >&2
    usage >&2
    exit 2
}

# Sets, for the driver in $folder: its libraries, their loader.
find_parts() {
    root=$folder/root
    libraries=$(compgen -G "$root/usr/lib/*/libvulkan_lvp.so" | head -n 1) && libraries=${libraries%/*} &&
        loader=$(compgen -G "$libraries/ld-linux*.so.*" | head -n 1)
}

# --- Fetching ---

# Takes the folder: one that this script made, or one where nothing is lost.
prepare_folder() {
    if [[ -e $folder && ! -d $folder ]]; then
        fail "$folder is no folder"
    fi
    if [[ -d $folder && ! -e $folder/made-by-vulkan-driver && -n $(ls -A "$folder") ]]; then
        fail "$folder holds something else already; name another folder, or an empty one"
    fi
    if ! { rm -rf "$folder" && mkdir -p "$folder" && : >"$folder/made-by-vulkan-driver"; } 2>/dev/null; then
        fail "$folder cannot be written; name a folder that you may write to"
    fi
    mkdir -p "$folder"/apt/{lists/partial,archives/partial} "$folder/root"
    : >"$folder/apt/status"
}

# Prints the archive that the system takes Debian itself from: neither the security archive nor a third party's. Before
# the first update of its lists apt knows no origin, and the name has to do.
find_archive() {
    local codename='' targets release component archive origin
    # shellcheck disable=SC2016 # names of apt's fields
    targets=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI) $(ORIGIN)' 'Created-By: Packages')
    if [[ -r /etc/os-release ]]; then
        # shellcheck source=/dev/null
        codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    fi
    while read -r release component archive origin; do
        case $release in
        "$codename" | stable | oldstable | testing | unstable | sid)
            if [[ $component == main && ($origin == Debian || (-z $origin && $archive == */debian*/)) ]]; then
                printf '%s\n' "$archive"
                return 0
            fi
            ;;
        esac
    done <<<"$targets"
    return 1
}

# What apt-get is told beyond the system's settings, so that it knows two suites and touches this folder alone.
make_settings() {
    local suite
    for suite in $suites; do
        printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$1" "$suite"
    done >"$folder/apt/sources.list"
    settings=(
        -o "Dir::State::lists=$folder/apt/lists" -o "Dir::State::status=$folder/apt/status"
        -o "Dir::State::extended_states=$folder/apt/extended_states"
        -o "Dir::Cache::archives=$folder/apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
        -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
        -o APT::Update::Error-Mode=any -o APT::Update::Post-Invoke= -o APT::Update::Post-Invoke-Success=
        -o DPkg::Post-Invoke= -o APT::Install-Recommends=false -o APT::Sandbox::User="$(id -un)"
        -o Acquire::Languages=none -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30
        -o Debug::NoLocking=true)
}

# Says why the lists of packages did not come.
explain_update() {
    sed 's/^/    /' "$1" >&2
    if grep -Eq 'NO_PUBKEY|EXPKEYSIG|not signed|signatures (were|couldn)' "$1"; then
        fail "apt cannot verify $2 with $keyring; a newer package debian-archive-keyring has the keys of Debian 13"
    elif grep -Eq 'does not have a Release file|404 ' "$1"; then
        fail "the archive $2 lacks one of the suites $suites"
    fi
    fail "the archive $2 cannot be reached"
}

fetch() {
    local archive settings log=$folder/apt/log package
    if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
        fail "this takes packages of Debian and needs apt-get and dpkg, which this system lacks"
    fi
    if ! archive=$(find_archive); then
        fail "the sources of this system's apt name no Debian archive; on other systems this script has none to take"
    fi
    if [[ ! -r $keyring ]]; then
        fail "$keyring is missing, so nothing that comes could be verified; install debian-archive-keyring"
    fi
    prepare_folder
    make_settings "$archive"
    printf 'Fetching %s from %s\n' "$packages" "$archive"
    apt-get "${settings[@]}" update >"$log" 2>&1 || explain_update "$log" "$archive"
    # shellcheck disable=SC2086 # one word for each package
    if ! apt-get "${settings[@]}" -y --download-only -t "${suites##* }" install $packages >"$log" 2>&1; then
        sed 's/^/    /' "$log" >&2
        fail "the packages could not be fetched from $archive"
    fi
    for package in "$folder"/apt/archives/*.deb; do
        dpkg -x "$package" "$root" || fail "$package could not be unpacked into $root (is the disk full?)"
    done
    finish
}

# Whatever is there has to work before the folder counts as complete.
finish() {
    local driver
    driver=$(compgen -G "$folder/apt/archives/mesa-vulkan-drivers_*.deb") || fail "no driver came"
    find_parts || fail "what came has no driver, or no loader for its libraries"
    "$loader" --library-path "$libraries" "$root/usr/bin/patchelf" --version >/dev/null ||
        fail "programs from $root do not start on this system"
    driver=${driver##*/mesa-vulkan-drivers_}
    rm -rf "$folder/apt"
    printf '%s\n' "${driver%_*}" >"$folder/complete"
}

# --- Running ---

# Sets $copy to a copy of a program that is loaded by the fetched loader, with the fetched libraries before the system's.
# The names stand in the copy, not in the environment, which programs that it starts in turn would inherit.
make_copy() {
    local program=$1 new
    copy=$folder/programs/$(cksum <<<"$program" | cut -d ' ' -f 1)/${program##*/}
    if [[ -e $copy && ! $copy -ot $program && ! $copy -nt $program ]]; then
        return 0
    fi
    mkdir -p "${copy%/*}" || fail "$folder cannot be written"
    new=$(mktemp "${copy%/*}/new.XXXXXX") || fail "$folder cannot be written"
    if ! cp "$program" "$new" || ! "$loader" --library-path "$libraries" "$root/usr/bin/patchelf" \
        --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$new" 2>"$new.log"; then
        sed 's/^/    /' "$new.log" >&2
        rm -f "$new" "$new.log"
        fail "$program is no program that is loaded with libraries (a script?)"
    fi
    touch -r "$program" "$new"
    chmod +x "$new"
    rm -f "$new.log"
    mv "$new" "$copy"
}

# run PROGRAM ARGUMENT...
run() {
    local program=$1 copy
    shift
    if [[ $program != */* ]]; then
        program=$root/usr/bin/$program
    fi
    if [[ ! -f $program ]]; then
        fail "there is no program $program"
    fi
    make_copy "$(realpath "$program")"
    VK_DRIVER_FILES=$(compgen -G "$root/usr/share/vulkan/icd.d/lvp_icd*.json" | head -n 1)
    export VK_DRIVER_FILES VK_ICD_FILENAMES=$VK_DRIVER_FILES
    # Layers of the caller's stay.
    export VK_LAYER_PATH=$root/usr/share/vulkan/explicit_layer.d${VK_LAYER_PATH:+:$VK_LAYER_PATH}
    export VK_LOADER_LAYERS_DISABLE='~implicit~'
    exec "$copy" "$@"
}

if [[ ${1:-} == --help ]]; then
    usage
    exit 0
fi
case ${1:-} in -*) refuse "unknown option $1" ;; esac
folder=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")/../build/vulkan-driver}")
root=$folder/root
if [[ $# -le 1 ]]; then
    if [[ ! -e $folder/complete ]] || ! find_parts; then
        fetch
    fi
    printf 'Mesa %s is in %s\n' "$(<"$folder/complete")" "$folder"
elif [[ $2 != --run ]]; then
    refuse "unknown argument $2"
elif [[ $# -lt 3 ]]; then
    refuse "--run needs a program"
elif [[ ! -e $folder/complete ]] || ! find_parts; then
    printf 'skipped: there is no driver in %s; fetch it with: tools/vulkan-driver.sh %s\n' "$folder" "$folder" >&2
    exit 77
else
    run "${@:3}"
fi
