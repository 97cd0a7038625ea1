// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// maxEnviron limits how many bytes of an environment are read. The kernel allows 2 MiB with
// the default stack size.
const maxEnviron = 1 << 20

// Variables in which OpenTelemetry SDKs expect resource attributes.
const (
	serviceName        = "OTEL_SERVICE_NAME"
	resourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
)

// variables returns the names of the variables to read, with the maximum length of their
// values.
func (c Config) variables() map[string]int {
	names := make(map[string]int)
	for _, name := range append([]string{EnvEnable, EnvExporter, EnvRank, serviceName}, c.Env...) {
		names[name] = MaxAttribute
	}
	names[EnvDir], names[EnvMultiprocDir], names[resourceAttributes] = maxPath, maxPath, 16<<10
	return names
}

// readEnviron returns the wanted variables of an environment in the format of
// /proc/PID/environ. Values become attributes, so it skips a variable that is longer than
// wanted or isn't UTF-8. If a variable is set twice, the first value is used, as by getenv(3).
//
// intact is false if the process has overwritten its environment. Programs that change
// their title, such as vLLM, write it over the arguments and the environment, and fill
// the rest with zeros.
func readEnviron(r io.Reader, wanted map[string]int) (env map[string]string, intact bool, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxEnviron))
	if err != nil {
		return nil, false, err
	}
	if len(b) == maxEnviron { // the limit cuts the last variable off
		b = b[:bytes.LastIndexByte(b, 0)+1]
	}
	env, intact = make(map[string]string), len(b) == 0
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		name, value, ok := bytes.Cut(entry, []byte("="))
		intact = intact || ok
		most, known := wanted[string(name)]
		_, twice := env[string(name)]
		if ok && known && !twice && len(value) <= most && utf8.Valid(value) {
			env[string(name)] = string(value)
		}
	}
	return env, intact, nil
}
