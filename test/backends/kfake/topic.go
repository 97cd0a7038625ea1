// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partition describes the contents of a partition.
type partition struct {
	Partition int32
	Messages  int64
	Bytes     int64 // as stored, possibly compressed
	Keys      int   // number of different keys; invalid messages have no key
}

// addInvalid writes a message that isn't OTLP to each partition. Any client with
// write access to a topic can do this.
func addInvalid(cluster *kfake.Cluster, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, p := range cluster.PartitionInfos(topic) {
		records = append(records, &kgo.Record{Topic: topic, Partition: p.Partition, Value: []byte("not OTLP")})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return client.ProduceSync(ctx, records...).FirstErr()
}

// read reads all messages of a topic.
func read(cluster *kfake.Cluster, topic string) ([]partition, error) {
	infos := cluster.PartitionInfos(topic)
	list, keys, missing := make([]partition, len(infos)), make([]map[string]bool, len(infos)), int64(0)
	from := make(map[int32]kgo.Offset)
	for _, p := range infos {
		list[p.Partition] = partition{p.Partition, p.HighWatermark - p.LogStartOffset, p.NumBytes, 0}
		keys[p.Partition] = make(map[string]bool)
		from[p.Partition] = kgo.NewOffset().AtStart()
		missing += list[p.Partition].Messages
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for missing > 0 {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return nil, fmt.Errorf("read topic %s: %w", topic, err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if len(r.Key) > 0 {
				keys[r.Partition][string(r.Key)] = true
			}
			missing--
		})
	}
	for i := range list {
		list[i].Keys = len(keys[i])
	}
	return list, nil
}
