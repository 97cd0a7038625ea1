// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Agent is a simulated NIXL agent in a container. It creates its ring in the
// directory from its environment, or in -dir, which simulates a program that sets
// its variables after its start. It runs one interval for each line of input and
// exits at the end of the input. It prints the number of written events at the
// start, after each interval, and when it exits. With -attack, it is a hostile container
// instead.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
)

func main() {
	dir := flag.String("dir", process.Env(os.LookupEnv).Dir(), "create the ring in this `directory`")
	hostile := flag.String("attack", "", "do this instead")
	n := flag.Int("n", 1, "do it this often")
	flag.Parse()
	var err error
	if *hostile != "" {
		err = attack(*hostile, *dir, *n)
	} else {
		err = run(filepath.Join(*dir, "agent"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	a, err := simulate.New(simulate.Config{Path: path, Rate: 1000})
	if err != nil {
		return err
	}
	if err := a.Start(); err != nil {
		return err
	}
	written := func() { fmt.Println(a.Totals().Written) }
	written()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := a.Interval(); err != nil {
			return err
		}
		written()
	}
	err = errors.Join(a.Stop(), lines.Err())
	written()
	return err
}
