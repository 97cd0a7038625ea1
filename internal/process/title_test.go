// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "testing"

func TestRankIsInTheTitlesOfEngines(t *testing.T) {
	for title, want := range map[string]string{
		"VLLM::Worker_TP3": "3", "VLLM::Worker_TP12_EP12": "12", "VLLM::Worker_EP2": "2", "VLLM::Worker_DP1_EP1": "1",
		"VLLM::Worker_DP0_PP1_TP3_EP2": "DP0_PP1_TP3", "mine::Worker_PP1": "1", "VLLM::Worker": "0", "VLLM::EngineCore_DP1": "1",
		"sglang::scheduler_TP1": "1", "sglang::scheduler_DP0_PP1_TP3": "DP0_PP1_TP3", "sglang::scheduler": "0", " VLLM::Worker_TP0  ": "0",
		"sglang::detokenizer": "", "VLLM::Worker_TP": "", "VLLM::Worker_TP1 x": "", "python3": "", "": "", "a b::Worker_TP1": "", "x::y::Worker_TP1": "",
	} {
		for _, rest := range []string{"", "\x00\x00\x00", "\x00--rank\x007\x00"} {
			if got := rankIn([]byte(title + rest)); got != want {
				t.Errorf("%q: %q, want %q", title+rest, got, want)
			}
		}
	}
}
