// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Session returns the command lines of all processes of a session, by process
// ID. It skips zombies.
func Session(sid int) map[int]string {
	list := make(map[int]string)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // the process has exited
		}
		fields := statFields(string(text)) // state ppid pgrp session
		if len(fields) < 4 || fields[3] != strconv.Itoa(sid) || fields[0] == "Z" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		list[pid] = strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	}
	return list
}

// killSession kills all processes of a session. It repeats the search because a
// process may fork during it.
func killSession(sid int) {
	for range 10 {
		list := Session(sid)
		if len(list) == 0 {
			return
		}
		for pid := range list {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have exited
		}
	}
}
