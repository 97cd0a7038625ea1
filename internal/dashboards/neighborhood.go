// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// neighborhood returns rows with metrics of other programs, which don't have the labels of agents.
func neighborhood() []Row {
	const gpu, port, device = "{{Hostname}} GPU {{gpu}}", "{{instance}} {{device}} port {{port}}", "{{instance}} {{device}}"
	perGPU := func(title, description string, unit Unit, series string) Panel {
		return lines(title, description+" Needs the DCGM exporter.", unit, "max by (Hostname, gpu) ("+series+")", gpu)
	}
	perPort := func(title, description string, unit Unit, expr string) Panel {
		return ranked(title, description+" Needs node_exporter.", unit, "sum by (instance, device, port) ("+expr+")", port)
	}
	perDevice := func(title, description, series string) Panel {
		return ranked(title, description+" Needs node_exporter.", BytesPerSecond, `sum by (instance, device) (rate(`+series+`{device!="lo"}[@]))`, device)
	}
	perModel := func(title string, unit Unit, by string, expr string) Panel {
		program := "Dynamo's frontend"
		if by == "model_name" {
			program = "vLLM's metrics"
		}
		return lines(title, "By model. Needs "+program+".", unit, expr, "{{"+by+"}}").wide(12)
	}
	// VLLM's names have a colon, which VictoriaMetrics replaces if it receives them over OTLP.
	const vllm, dynamo = "model_name", "model"
	const running = `num_requests_running{model_name=~"$model"}`
	first := func(prefix string) string {
		return ofModel(vllm, prefix+"time_to_first_token_seconds").quantile("0.99", vllm)
	}
	return []Row{
		{Title: "NIC (needs node_exporter)", Panels: []Panel{
			perPort("InfiniBand and RoCE, sent", "Bytes that each port of an RDMA device sends.", BytesPerSecond,
				"rate(node_infiniband_port_data_transmitted_bytes_total[@])"),
			perPort("InfiniBand and RoCE, received", "Bytes that each port of an RDMA device receives.", BytesPerSecond,
				"rate(node_infiniband_port_data_received_bytes_total[@])"),
			perPort("InfiniBand and RoCE, errors", "Received packets with errors, and discarded packets.", PerSecond,
				"rate(node_infiniband_port_errors_received_total[@]) + rate(node_infiniband_port_discards_transmitted_total[@])"),
			perDevice("Network, sent", "Bytes that each network device sends. RDMA isn't included.", "node_network_transmit_bytes_total"),
			perDevice("Network, received", "Bytes that each network device receives. RDMA isn't included.", "node_network_receive_bytes_total"),
		}, Optional: true},
		{Title: "GPU (needs the DCGM exporter)", Panels: []Panel{
			perGPU("NVLink, sent", "Bytes that each GPU sends over NVLink.", BytesPerSecond, "DCGM_FI_PROF_NVLINK_TX_BYTES"),
			perGPU("NVLink, received", "Bytes that each GPU receives over NVLink.", BytesPerSecond, "DCGM_FI_PROF_NVLINK_RX_BYTES"),
			perGPU("Copy utilization", "Share of the time in which each GPU's memory was read or written.", Percent, "DCGM_FI_DEV_MEM_COPY_UTIL").upTo(100),
			perGPU("PCIe, sent", "Bytes that each GPU sends over PCIe.", BytesPerSecond, "DCGM_FI_PROF_PCIE_TX_BYTES"),
			perGPU("PCIe, received", "Bytes that each GPU receives over PCIe.", BytesPerSecond, "DCGM_FI_PROF_PCIE_RX_BYTES"),
		}, Optional: true},
		{Title: "Serving (needs vLLM or Dynamo)", Panels: []Panel{
			perModel("Time to first token, 99th percentile (vLLM)", Seconds, vllm, either(first("vllm:"), first("vllm_"))),
			perModel("Running requests (vLLM)", Count, vllm, `sum by (model_name) (vllm:`+running+` or vllm_`+running+`)`),
			perModel("Time to first token, 99th percentile (Dynamo)", Seconds, dynamo,
				ofModel(dynamo, "dynamo_frontend_time_to_first_token_seconds").quantile("0.99", dynamo)),
			perModel("Running requests (Dynamo)", Count, dynamo, `sum by (model) (dynamo_frontend_inflight_requests{model=~"$model"})`),
			perModel("Time between tokens, 99th percentile (Dynamo)", Milliseconds, dynamo,
				ofModel(dynamo, "dynamo_frontend_inter_token_latency_seconds").quantile("0.99", dynamo)),
		}, Optional: true},
	}
}

// ofModel returns a histogram of another program, with a label of the model's name.
func ofModel(label, name string) histogram {
	return histogram{name: name, matchers: label + `=~"$model"`, foreign: true}
}
