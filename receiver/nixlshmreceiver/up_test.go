package nixlshmreceiver

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/watch"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// nixl.agent.up is reported only of agents that the kernel knows about.
func TestAgentUp(t *testing.T) {
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := createDefaultConfig()
	mb := metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, receivertest.NewNopSettings(metadata.Type))
	b := newBuilder(cfg, mb, "host", time.Now)
	yes, no := true, false
	for want, up := range map[int64]*bool{1: &yes, 0: &no, -1: nil} {
		b.agent(watch.View{Agent: new(watch.Agent), Tally: tally.NewAgent(shape), Layout: ringbuf.V4, Start: time.Now(), Up: up})
		got := int64(-1)
		for _, m := range b.Emit().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "nixl.agent.up" {
				got = m.Sum().DataPoints().At(0).IntValue()
			}
		}
		if got != want {
			t.Errorf("nixl.agent.up is %d, want %d (-1: absent)", got, want)
		}
	}
}
