// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command agent runs in the pods of the cluster test. It replaces an inference
// server with several ranks, where each rank is a process with a NIXL agent. It
// also replaces the OTLP endpoint that receives the metrics.
//
//	agent           start RANKS ranks; this is the container's command
//	agent write N   make each rank write N transfers to its ring
//	agent die       make the container exit, as a crash does
//	agent ready     exit with code 0 if all ranks have created their rings
//	agent sink      receive OTLP over gRPC on :4317 and serve it as JSON on :8080
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
		return runRank()
	case args[0] == "write" && len(args) == 2:
		return sendAll(ranks, "write "+args[1])
	case args[0] == "ready":
		return sendAll(ranks, "ready")
	case args[0] == "die":
		return send(mainSocket, "die")
	case args[0] == "sink":
		return sink()
	}
	return fmt.Errorf("unknown command %q", args)
}
