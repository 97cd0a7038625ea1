// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// kafka is a Kafka cluster that can be stopped and started again.
type kafka struct {
	*proc.Process

	brokers []string
	args    []string
}

const partitions = 6

func newKafka(t *testing.T) *kafka {
	t.Helper()
	k := &kafka{}
	var ports []string
	for range 3 {
		port := fmt.Sprint(proc.FreePort(t))
		ports, k.brokers = append(ports, port), append(k.brokers, "127.0.0.1:"+port)
	}
	k.args = []string{
		"-ports", strings.Join(ports, ","), "-data", t.TempDir(),
		"-topic", "nixl_metrics", "-partitions", fmt.Sprint(partitions),
	}
	k.start(t)
	return k
}

func (k *kafka) start(t *testing.T) {
	t.Helper()
	k.Process = proc.Start(t, exec.CommandContext(t.Context(), kfakeBin, k.args...))
	k.WaitFor(t, "ready:")
}

// env returns the environment variable with the brokers.
func (k *kafka) env() string { return "KAFKA_BROKERS=" + strings.Join(k.brokers, ",") }

// partition describes the content of a partition of the topic.
type partition struct{ Partition, Messages, Bytes, Keys int }

// stop stops the cluster, and returns the content of its partitions.
func (k *kafka) stop(t *testing.T) (contents []partition) {
	t.Helper()
	k.Stop(t, syscall.SIGTERM)
	for _, line := range k.Stdout.Lines() {
		var p partition
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		contents = append(contents, p)
	}
	return contents
}

// The metrics pass through gateways, Kafka and a consumer to the backend. Each agent's points arrive in
// order. Then the cluster crashes, and later the backend and the consumer stop. At the end, nothing is
// missing.
func TestScaleKafkaDeliversEverythingDespiteOutages(t *testing.T) {
	needFull(t)
	t.Parallel()
	k := newKafka(t)
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	backend, _ := sink(t, "http", address)
	gateways := twoGateways(t, setup{
		program:  fullBin,
		sample:   "scale/gateway-kafka.yaml",
		overlays: []string{soon("kafka"), "exporters: {kafka: {sending_queue: {batch: {flush_timeout: 50ms}}}}\n"},
		env:      []string{k.env()},
	})
	reader := setup{
		program:  fullBin,
		sample:   "scale/kafka-store.yaml",
		overlays: []string{soon("otlp_http"), "exporters: {otlp_http: {sending_queue: {batch: {flush_timeout: 50ms}}}}\n"},
		env:      []string{k.env(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address},
	}
	readers := []*collector{reader.start(t)}
	f := newFleet(t, 2, 16)
	f.write(t)
	hosts := f.start(t, gateways)
	for range 3 {
		f.write(t)
		backend.awaitTotals(t, want(f.agents...))
	}

	backend.file.AnyOrder() // from here on, messages may arrive twice
	k.Kill(t)
	f.write(t)
	gateways[0].WaitFor(t, "Exporting failed")
	gateways[0].Stop(t, syscall.SIGTERM) // its queue is on disk
	f.write(t)
	gateways[0].startAgain(t)
	k.start(t)
	backend.awaitTotals(t, want(f.agents...))

	backend.Stop(t, syscall.SIGTERM)
	f.write(t)
	readers[0].WaitFor(t, "Exporting failed")
	readers[0].Kill(t)
	readers = []*collector{reader.start(t), reader.start(t)}
	f.write(t)
	backend, _ = sink(t, "http", address) // empty
	backend.file.AnyOrder()
	backend.awaitTotals(t, want(f.agents...))
	for _, c := range append(append(hosts, gateways[0].collector, gateways[1].collector), readers...) {
		c.Stop(t, syscall.SIGTERM)
	}
	spread(t, k.stop(t), len(f.agents))
}

// spread fails the test if an agent is in more than one partition, or if all agents are in one.
func spread(t *testing.T, contents []partition, agents int) {
	t.Helper()
	t.Logf("the topic has %+v", contents)
	keys, used := 0, 0
	for _, p := range contents {
		keys += p.Keys
		if p.Messages > 0 {
			used++
		}
	}
	if len(contents) != partitions || keys != agents || used < 2 {
		t.Errorf("%d agents have %d keys in %d of %d partitions", agents, keys, used, len(contents))
	}
}
