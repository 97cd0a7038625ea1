// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "testing"

func TestWorkerIsDerivedFromOperationAndDevice(t *testing.T) {
	for _, c := range []struct {
		operation, device string
		layer             int
		want              string
	}{
		{"embedding", CPU, -1, "cpu_embedding"},
		{"embedding", IGPU, -1, "igpu_embedding"},
		{"embedding_lookup", CPU, -1, "cpu_embedding_lookup"}, // another operation
		{"router_logits", IGPU, 3, "cpu_router"},
		{"expert_selection", IGPU, 3, "cpu_router"},
		{"router_norm", CPU, 3, "cpu_router"},
		{"expert_ffn", IGPU, 31, "igpu_expert_ffn_layer_31"},
		{"expert_ffn", CPU, 31, "cpu_expert_ffn_layer_31"},
		{"expert_ffn_norm", "npu", 2, "cpu_expert_ffn_layer_2"},
		{"attention_qkv_proj", CPU, 1, "cpu_attention_layer_1"},
		{"attention_layernorm", IGPU, 1, "igpu_attention_layer_1"},
		{"final_layernorm", CPU, 32, "cpu_layernorm_layer_32"},
		{"rms_norm", IGPU, 0, "igpu_layernorm_layer_0"},
		{"lm_head", CPU, 33, "cpu_lm_head"},
		{"sampling", CPU, 33, "cpu_sampling"},
		{"expert_merge", IGPU, 3, "igpu_expert_merge"},
	} {
		if got := worker(c.operation, c.device, c.layer); got != c.want {
			t.Errorf("%s on %s at layer %d is %s, want %s", c.operation, c.device, c.layer, got, c.want)
		}
	}
}
