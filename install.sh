#!/bin/sh
# Installs a release of Lifthouse for the current user: curl -fsSL ADDRESS/install.sh | sh
#
#   LIFTHOUSE_VERSION      release to install, such as v1.0.0; default: latest
#   LIFTHOUSE_INSTALL_DIR  folder of the installation; default: ~/.local/share/lifthouse
#   LIFTHOUSE_RELEASES     address of the releases
#
# The program is linked as ~/.local/bin/lifthouse. Each installation is unpacked into a new folder. The link is changed
# by a rename after everything was verified, so an installation that fails leaves the earlier one as it was.
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

need() {
	command -v "$1" >/dev/null 2>&1 || fail "$1 is required, and is not installed"
}

# platform prints the platform as the names of the archives have it.
platform() {
	system=$(uname -s)
	machine=$(uname -m)
	case $system in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "unknown system \"$system\": releases are for Linux and macOS; build from source instead" ;;
	esac
	case $machine in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "unknown processor \"$machine\": releases are for x86_64 and arm64; build from source instead" ;;
	esac
	echo "$os-$arch"
}

# download FROM TO
download() {
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL -o "$2" "$1" || fail "cannot download $1; nothing was changed"
	else
		wget -q -t 1 -O "$2" "$1" || fail "cannot download $1; nothing was changed"
	fi
}

checksum() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum <"$1"
	else
		shasum -a 256 <"$1"
	fi | cut -d ' ' -f 1
}

# clean removes what an installation that did not succeed leaves.
clean() {
	if [ -n "$new" ]; then
		rm -rf "$new"
	fi
	if [ -n "$link" ]; then
		rm -f "$link.$$"
	fi
	if [ -n "$made" ]; then
		rmdir "$dir" 2>/dev/null || :
	fi
}

# The shell runs nothing before it has read this function to its end, so a part of the script does nothing.
main() {
	for tool in uname tar gzip mktemp cut sed readlink; do
		need "$tool"
	done
	command -v curl >/dev/null 2>&1 || command -v wget >/dev/null 2>&1 || fail "curl or wget is required, and neither is installed"
	command -v sha256sum >/dev/null 2>&1 || command -v shasum >/dev/null 2>&1 ||
		fail "sha256sum or shasum is required, and neither is installed"
	[ -n "${HOME:-}" ] || fail "HOME is not set"
	releases=${LIFTHOUSE_RELEASES:-https://github.com/lifthouse/lifthouse/releases}
	releases=${releases%/}
	version=${LIFTHOUSE_VERSION:-latest}
	platform=$(platform)

	bin=$HOME/.local/bin
	if [ -e "$bin/lifthouse" ] && { [ ! -L "$bin/lifthouse" ] || [ -d "$bin/lifthouse" ]; }; then
		fail "$bin/lifthouse is not a link to a program, so this script did not install it: remove it first"
	fi
	dir=${LIFTHOUSE_INSTALL_DIR:-$HOME/.local/share/lifthouse}
	new=''
	link=''
	made=''
	trap clean EXIT
	trap 'exit 1' HUP INT TERM
	[ -d "$dir" ] || made=yes
	mkdir -p "$dir" "$bin"
	dir=$(cd "$dir" && pwd)
	new=$(mktemp -d "$dir/.new.XXXXXX")

	# The file of checksums names the archive, and so the version that is the latest.
	if [ "$version" = latest ]; then
		download "$releases/latest/download/SHA256SUMS" "$new/SHA256SUMS"
	else
		download "$releases/download/$version/SHA256SUMS" "$new/SHA256SUMS"
	fi
	line=$(sed -n "s/^\([0-9a-f]\{64\}\)  \(lifthouse-[A-Za-z0-9._+-]*-$platform\.tar\.gz\)\$/\1 \2/p" "$new/SHA256SUMS" | sed -n 1p)
	[ -n "$line" ] || fail "release $version has no archive for $platform; nothing was changed"
	want=${line%% *}
	archive=${line#* }
	version=${archive#lifthouse-}
	version=${version%"-$platform.tar.gz"}

	echo "Downloading $archive …"
	download "$releases/download/$version/$archive" "$new/$archive"
	got=$(checksum "$new/$archive")
	[ "$got" = "$want" ] || fail "$archive has the checksum $got, want $want: the download is damaged or was changed; nothing was changed"
	tar -xzf "$new/$archive" -C "$new" --strip-components=1 || fail "cannot unpack $archive; nothing was changed"
	rm "$new/$archive" "$new/SHA256SUMS"
	"$new/lifthouse" --version >/dev/null ||
		fail "the program of $archive does not run on this machine: Linux needs glibc; nothing was changed"

	trap '' HUP INT TERM # from here on, the installation is completed
	old=$(readlink "$bin/lifthouse" || :)
	folder=$dir/$version
	[ ! -e "$folder" ] || folder=$dir/$version.${new##*.}
	chmod 755 "$new"
	: >"$new/.installed"
	mv "$new" "$folder"
	new=$folder
	link=$bin/lifthouse
	ln -s "$folder/lifthouse" "$link.$$"
	mv -f "$link.$$" "$link"
	new=''
	made=''
	case $old in
	"$dir"/*/lifthouse) [ ! -e "${old%/*}/.installed" ] || rm -rf "${old%/*}" ;;
	esac

	echo "Installed Lifthouse $version in $folder${old:+, instead of $old}."
	echo "Linked it as $link."
	case :$PATH: in
	*:"$bin":*) ;;
	*) echo "$bin is not in PATH. Add it: export PATH=\"$bin:\$PATH\"" ;;
	esac
	echo "Next: lifthouse demo"
}

main
