// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
)

// shared creates receivers. The Collector creates one for each signal. Those with the
// same configuration share one ringReceiver, which drains each ring once.
type shared struct {
	on machine

	mu        sync.Mutex
	receivers map[component.Config]*ringReceiver
}

// pipeline is the receiver in the pipeline of one signal.
type pipeline struct {
	*ringReceiver
	begin func() // starts exporting to this pipeline, whose consumer has started
	leave func() // makes the next pipeline with this configuration create a new receiver
}

// Start starts the receiver, unless another pipeline has.
func (p *pipeline) Start(ctx context.Context, collector component.Host) error {
	if err := p.start(ctx, collector); err != nil {
		return err
	}
	p.begin()
	return nil
}

// Shutdown shuts the receiver down, unless another pipeline has.
func (p *pipeline) Shutdown(ctx context.Context) error {
	p.leave()
	return p.shutdown(ctx)
}

func (s *shared) metrics(_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	p, obs, err := s.pipeline(cfg, settings)
	if err != nil {
		return nil, err
	}
	p.next, p.obs = next, obs
	p.begin = func() { p.run(p.loop) }
	return p, nil
}

func (s *shared) logs(_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	p, obs, err := s.pipeline(cfg, settings)
	if err != nil {
		return nil, err
	}
	p.slow = newSlowLog(p.ringReceiver, s.on, settings, next, obs)
	p.begin = func() {
		p.slow.start()
		if p.next == nil {
			p.run(p.loop) // retires agents and updates the component's status
		}
	}
	return p, nil
}

// pipeline returns the receiver of a configuration for another pipeline. It creates
// the receiver if there is none.
func (s *shared) pipeline(cfg component.Config, settings receiver.Settings) (*pipeline, *receiverhelper.ObsReport, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: settings.ID, Transport: "shm", ReceiverCreateSettings: settings,
	})
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.receivers[cfg]
	if !ok {
		if r, err = newReceiver(cfg.(*Config), settings, s.on); err != nil { //nolint:forcetypeassert,errcheck // what createDefaultConfig returned
			return nil, nil, err
		}
		s.receivers[cfg] = r
	}
	return &pipeline{ringReceiver: r, leave: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.receivers[cfg] == r {
			delete(s.receivers, cfg)
		}
	}}, obs, nil
}
