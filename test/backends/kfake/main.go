// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command kfake is a Kafka cluster for tests. It uses the library kfake instead of
// Apache Kafka. The library implements Kafka's protocol with consumer groups and
// stores topics in files.
//
//	kfake -ports 20001,20002,20003 -data DIR -topic nixl_metrics -partitions 6
//
// Each port is a broker. When kfake starts, it writes a message that isn't OTLP to
// each partition. On SIGTERM, it prints the contents of the topic as JSON, one
// line for each partition, and exits.
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
	ports := flag.String("ports", "", "comma-separated `ports` of the brokers on 127.0.0.1")
	data := flag.String("data", "", "store the topic in this `directory`")
	topic := flag.String("topic", "", "`name` of the topic")
	partitions := flag.Int("partitions", 1, "number of partitions of a new topic")
	flag.Parse()

	// Handle signals before "ready" is printed.
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
	if err := addInvalid(cluster, *topic); err != nil {
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
