// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// message is passed from kernel to kernel. Each kernel sets a field.
type message struct {
	trace   trace.SpanContext // of the line
	text    string
	samples []float64
	result  result
	encoded []byte
}

type result struct {
	Samples   int     `json:"samples"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// line returns a line of samples. The share bad of all lines can't be parsed, and one in
// 200 lines is empty.
func line(r *rand.Rand, bad float64) string {
	if r.IntN(200) == 0 {
		return ""
	}
	words := make([]string, 4+r.IntN(60))
	for i := range words {
		words[i] = strconv.FormatFloat(r.NormFloat64(), 'f', 3, 64)
	}
	if r.Float64() < bad {
		words[0] = "n/a"
	}
	return strings.Join(words, " ")
}

// parse reads the samples. The error.type of its errors is *strconv.NumError.
func parse(m message) (message, error) {
	for word := range strings.FieldsSeq(m.text) {
		sample, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return m, fmt.Errorf("parse %q: %w", word, err)
		}
		m.samples = append(m.samples, sample)
	}
	return m, nil
}

// noSamplesError sets its own error.type.
type noSamplesError struct{}

func (noSamplesError) Error() string     { return "no samples" }
func (noSamplesError) ErrorType() string { return "no_samples" }

// reduce computes the mean and the standard deviation.
func reduce(m message) (message, error) {
	n := float64(len(m.samples))
	if n == 0 {
		return m, noSamplesError{}
	}
	var sum, squares float64
	for _, s := range m.samples {
		sum += s
	}
	mean := sum / n
	for _, s := range m.samples {
		squares += (s - mean) * (s - mean)
	}
	m.result = result{Samples: len(m.samples), Mean: mean, Deviation: math.Sqrt(squares / n)}
	return m, nil
}

// format encodes the result as JSON.
func format(m message) (message, error) {
	var err error
	m.encoded, err = json.Marshal(m.result)
	return m, err
}
