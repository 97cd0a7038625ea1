// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package title changes the title of a process as the Python package setproctitle does, which vLLM and SGLang use.
package title

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The runtime's strings are in the memory that Set overwrites.
func init() {
	for i, arg := range os.Args {
		os.Args[i] = strings.Clone(arg)
	}
	env := os.Environ()
	for i, variable := range env {
		env[i] = strings.Clone(variable)
	}
	os.Clearenv()
	for _, variable := range env {
		if name, value, ok := strings.Cut(variable, "="); ok {
			_ = os.Setenv(name, value) // the name is valid
		}
	}
}

// Set overwrites the arguments and the environment of this process with a title and zeros, so that others
// can't read its environment. The process itself still has both.
func Set(title string) error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const argStart, envEnd = 45, 48 // after the name, which is the second field of proc_pid_stat(5)
	if len(fields) <= envEnd {
		return fmt.Errorf("/proc/self/stat has %d fields after the name", len(fields))
	}
	start, err1 := strconv.ParseInt(fields[argStart], 10, 64)
	end, err2 := strconv.ParseInt(fields[envEnd], 10, 64)
	memory, err3 := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	defer memory.Close()
	b := make([]byte, end-start)
	copy(b[:len(b)-1], title)
	_, err = memory.WriteAt(b, start)
	return errors.Join(err, os.WriteFile("/proc/self/comm", []byte(title), 0))
}
