// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command kfake is a cluster for the tests of the samples that speak to Kafka.
// It isn't Apache Kafka, which is no Go program: the library kfake speaks the
// protocol, with its consumer groups, and keeps its topics in files.
//
//	kfake -ports 20001,20002,20003 -data DIR -topic nixl_metrics -partitions 6
//
// Each port is a broker. Whenever it starts, it puts a message into each partition
// that nobody can read. SIGTERM ends it, and has it say what is in the topic:
// JSON, a line for each partition.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(1)
	}
}

func run() error {
	ports := flag.String("ports", "", "the brokers' `ports` on 127.0.0.1, with commas between")
	data := flag.String("data", "", "the `directory` that the topic is kept in")
	topic := flag.String("topic", "", "the topic's `name`")
	partitions := flag.Int("partitions", 1, "how many partitions the topic has if it is new")
	flag.Parse()

	// Before anybody is told that there is something to stop.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)

	numbers, err := parse(*ports)
	if err != nil {
		return err
	}
	cluster, err := kfake.NewCluster(
		kfake.Ports(numbers...), kfake.NumBrokers(len(numbers)),
		kfake.DataDir(*data), kfake.SeedTopics(int32(*partitions), *topic),
		kfake.WithLogger(kfake.BasicLogger(os.Stderr, kfake.LogLevelWarn)),
	)
	if err != nil {
		return err
	}
	defer cluster.Close()
	if err := spoil(cluster, *topic); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "ready:", strings.Join(cluster.ListenAddrs(), ","))
	<-stop
	contents, err := read(cluster, *topic)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, p := range contents {
		if err := out.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

func parse(ports string) (numbers []int, err error) {
	for port := range strings.SplitSeq(ports, ",") {
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("ports: %w", err)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
