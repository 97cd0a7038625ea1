// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// Without a reader, the metrics of drained events are lost. The Producer of this test is
// closed, because the goroutines of an open one don't run in a bubble of synctest.
func TestProducerWithoutAReaderIsReported(t *testing.T) {
	for name, collected := range map[string]bool{"no reader": false, "a reader": true} {
		t.Run(name, func(t *testing.T) {
			errs := metrictest.Handled(t)
			synctest.Test(t, func(t *testing.T) {
				p := Producer{waiting: awaitReader(), closed: true}
				if collected {
					if _, err := p.Produce(t.Context()); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Hour) // synctest
				synctest.Wait()
			})
			if reported := len(errs()) == 1; reported == collected || len(errs()) > 1 {
				t.Errorf("reported %q", errs())
			}
		})
	}
}
