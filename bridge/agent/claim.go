// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// checkName rejects a name that isn't valid as a ring's file name. It applies to
// all agents, so that a program can switch between a ring and a Producer.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("agent name %q: must be a file name: not empty, not . or .., without / and NUL", name)
	}
	return nil
}

var (
	errOpenRing = errors.New("an open agent of this process reports this name through a ring: " +
		"a backend would count it twice; use the same option for both agents, or another name")
	errOpenProducer = errors.New("an open agent of this process reports this name through a Producer: " +
		"a backend would count it twice; use the same option for both agents, or another name")
)

// claims holds the names of the open agents of this process. Two agents with the
// same name must report in the same way, because a backend would add up the values
// from a ring and from a Producer.
var claims = struct {
	mu     sync.Mutex
	byName map[string]claim
}{byName: make(map[string]claim)}

// claim counts the open agents with the same name.
type claim struct{ rings, producers int }

// claim returns the claim of one agent with this configuration.
func (c *config) claim() (own claim) {
	if c.ring != nil {
		own.rings = 1
	}
	if c.producer != nil {
		own.producers = 1
	}
	return own
}

// take claims a name until release is called.
func (own claim) take(name string) error {
	claims.mu.Lock()
	defer claims.mu.Unlock()
	all := claims.byName[name]
	switch {
	case own.producers > 0 && all.rings > 0:
		return errOpenRing
	case own.rings > 0 && all.producers > 0:
		return errOpenProducer
	}
	claims.byName[name] = claim{all.rings + own.rings, all.producers + own.producers}
	return nil
}

func (own claim) release(name string) {
	claims.mu.Lock()
	defer claims.mu.Unlock()
	all := claims.byName[name]
	all = claim{all.rings - own.rings, all.producers - own.producers}
	if all == (claim{}) {
		delete(claims.byName, name)
		return
	}
	claims.byName[name] = all
}
