// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

const (
	// maxEnviron limits how many bytes of an environment are read. The kernel allows
	// 2 MiB with the default stack size.
	maxEnviron = 2 << 20
)

// environment is what is known from the environment of a process.
type environment struct {
	env        map[string]string // see [Process.Env]
	attributes map[string]string // see [Process.Attributes]
	intact     bool              // the process hasn't overwritten its environment
}

// newEnvironment returns what is kept of the variables. OTEL_RESOURCE_ATTRIBUTES may be long,
// and there may be many processes.
func newEnvironment(env map[string]string, intact bool, f filter) environment {
	e := environment{env: env, intact: intact}
	if env[resourceAttributes] != "" || env[serviceName] != "" {
		e.attributes = f.attributes(env[resourceAttributes], env[serviceName])
		delete(env, resourceAttributes)
	}
	return e
}

// readEnviron returns the wanted variables of an environment in the format of
// /proc/PID/environ. Values become attributes, so it skips a variable that is longer than
// wanted or isn't UTF-8. If a variable is set twice, the first value is used, as by getenv(3).
//
// intact is false if the process has overwritten its environment. Programs that change
// their title, such as vLLM, write it over the arguments and the environment, and fill
// the rest with zeros.
func readEnviron(r io.Reader, wanted map[string]int) (env map[string]string, intact bool, err error) {
	limited := &io.LimitedReader{R: r, N: maxEnviron}
	b := newLines(limited)
	defer freeLines(b)
	for empty := true; err == nil; {
		var entry []byte
		entry, err = b.ReadSlice(0)
		empty = empty && len(entry) == 0
		intact = intact || empty && errors.Is(err, io.EOF) || bytes.IndexByte(entry, '=') >= 0
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			err = skip(b, 0)
			continue
		case err != nil && limited.N <= 0: // the limit cuts this variable off
			continue
		}
		name, value, ok := bytes.Cut(bytes.TrimSuffix(entry, []byte{0}), []byte("="))
		if _, twice := env[string(name)]; twice || !ok || len(value) > wanted[string(name)] || !utf8.Valid(value) {
			continue
		}
		if _, known := wanted[string(name)]; !known {
			continue
		}
		if env == nil {
			env = make(map[string]string)
		}
		env[string(name)] = string(value)
	}
	return env, intact, ignoreEOF(err)
}
