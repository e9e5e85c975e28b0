#!/usr/bin/env bash
# What tools/vulkan-driver.sh says and does where something is wrong, with an apt-get that plays the part.
# usage: driver_script.sh SCRIPT
set -euo pipefail

script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The commands that the script may use, apt-get aside.
mkdir "$work/bin"
for name in bash dirname basename realpath ls rm mkdir sed grep head cut id cat cp mv touch chmod mktemp cksum; do
    ln -s "$(command -v "$name")" "$work/bin/$name"
done
printf '#!/bin/bash\n' >"$work/bin/dpkg"
chmod +x "$work/bin/dpkg"

# play ARCHIVES UPDATE: an apt-get with these index targets, whose update says this and fails.
play() {
    cat >"$work/bin/apt-get" <<STUB
#!/bin/bash
case "\$*" in
*indextargets*) printf '%s\n' '$1' ;;
*update*) printf '%s\n' '$2'; exit 100 ;;
*) echo unexpected: "\$*"; exit 99 ;;
esac
STUB
    chmod +x "$work/bin/apt-get"
}

# expect STATUS WORDS ARGUMENT...: the script ends so, and says the words.
expect() {
    local status=0
    PATH=$work/bin "$work/script" "${@:3}" >"$work/out" 2>&1 || status=$?
    if [[ $status -ne $1 ]] || ! grep -qF -- "$2" "$work/out"; then
        printf 'vulkan-driver.sh %s: status %d, not %d, or no word of "%s":\n' "${*:3}" "$status" "$1" "$2"
        cat "$work/out"
        exit 1
    fi
}

# shellcheck source=/dev/null
codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-stable}")
debian="$codename main http://archive.invalid/debian/ Debian"
touch "$work/keyring"
sed "s|^keyring=.*|keyring=$work/keyring|" "$script" >"$work/script"
chmod +x "$work/script"
folder=$work/a/driver

expect 0 'usage:' --help
expect 2 'unknown option --frobnicate' --frobnicate
expect 2 'unknown argument --walk' "$folder" --walk
expect 2 '--run needs a program' "$folder" --run
expect 77 'skipped: there is no driver' "$folder" --run true
expect 1 'needs apt-get and dpkg' "$folder"

play 'stable main https://packages.invalid/apt/ Somebody' ''
expect 1 'name no Debian archive' "$folder"
play "$codename universe http://archive.invalid/ubuntu/ Ubuntu" ''
expect 1 'name no Debian archive' "$folder"

play "$debian" 'Err:1 http://archive.invalid/debian trixie InRelease: Could not resolve'
expect 1 'archive http://archive.invalid/debian/ cannot be reached' "$folder"
play "$codename main http://archive.invalid/debian/ " 'E: The repository ... does not have a Release file.'
expect 1 'lacks one of the suites trixie trixie-backports' "$folder"
play "$debian" 'W: GPG error: NO_PUBKEY 6ED0E7B82643E131'
expect 1 'newer package debian-archive-keyring' "$folder"
grep -q "signed-by=$work/keyring.*http://archive.invalid/debian/ trixie-backports main" "$folder/apt/sources.list"

# A half folder is made anew, what is somebody's is left alone.
[[ -e $folder/made-by-vulkan-driver && ! -e $folder/complete ]]
touch "$folder/junk"
expect 1 'newer package debian-archive-keyring' "$folder"
[[ ! -e $folder/junk ]]
mkdir "$work/mine"
echo precious >"$work/mine/text"
expect 1 'holds something else already' "$work/mine"
[[ $(<"$work/mine/text") == precious ]]
expect 1 'is no folder' "$work/keyring"
expect 1 'cannot be written' /proc/nowhere
rm "$work/keyring"
expect 1 'install debian-archive-keyring' "$folder"

# A complete folder is used as it is: this apt-get would fail.
mkdir -p "$folder/root/usr/lib/somewhere" "$folder/root/usr/bin"
touch "$folder/root/usr/lib/somewhere/"{libvulkan_lvp.so,ld-linux.so.2}
echo 26.1 >"$folder/complete"
expect 0 "Mesa 26.1 is in $folder" "$folder"
expect 1 'there is no program' "$folder" --run nothing
rm "$folder/root/usr/lib/somewhere/libvulkan_lvp.so"
expect 77 'skipped: there is no driver' "$folder" --run true
echo ok
