package main

import "runtime/debug"

// release is the version, set by .goreleaser.yaml and the Dockerfile.
var release string

// buildVersion returns the version of the release or of the module. Without one, it
// returns the version of the module and the commit that the program was built from.
func buildVersion() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return info.Main.Version + " " + setting.Value
		}
	}
	return info.Main.Version
}
