// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command agent is the program of the pods in the cluster test. It stands in for
// an inference server with several ranks, each of which is a process with a NIXL
// agent, and for the OTLP endpoint that the metrics go to.
//
//	agent           starts RANKS ranks; what a container runs
//	agent write N   lets each rank write N transfers to its ring
//	agent die       ends the container, as a crash does
//	agent ready     reports whether all ranks have their rings
//	agent sink      receives OTLP over gRPC on :4317, and serves it as JSON on :8080
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ranks, err := strconv.Atoi(os.Getenv("RANKS"))
	if err != nil {
		ranks = 1
	}
	switch {
	case len(args) == 0:
		return serve(ranks)
	case args[0] == "rank":
		return beRank()
	case args[0] == "write" && len(args) == 2:
		return tellAll(ranks, "write "+args[1])
	case args[0] == "ready":
		return tellAll(ranks, "ready")
	case args[0] == "die":
		return tell(mainSocket, "die")
	case args[0] == "sink":
		return sink()
	}
	return fmt.Errorf("unknown command %q", args)
}
