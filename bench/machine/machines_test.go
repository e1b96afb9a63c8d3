package machine

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// tree is a machine under testdata/machines.
func tree(name string) string { return filepath.Join("testdata", "machines", name) }

// machines says what each recorded machine is.
var machines = []struct {
	tree, core, product, cloud, instance string
	emulated                             bool
}{
	{tree: "aws-a1", core: "Cortex-A72", product: "Graviton1", cloud: "AWS", instance: "a1.large"},
	{tree: "aws-c6g.large", core: "Neoverse N1", product: "Graviton2", cloud: "AWS", instance: "c6g.large"},
	{tree: "graviton2-without-dmi", core: "Neoverse N1", product: "Graviton2"},
	{tree: "aws-m6g.4xlarge", core: "Neoverse N1", product: "Graviton2", cloud: "AWS", instance: "m6g.4xlarge"},
	{tree: "aws-m6g.metal", core: "Neoverse N1", product: "Graviton2", cloud: "AWS", instance: "m6g.metal"},
	{tree: "aws-c7g.large", core: "Neoverse V1", product: "Graviton3", cloud: "AWS", instance: "c7g.large"},
	{tree: "aws-c7g.medium", core: "Neoverse V1", product: "Graviton3", cloud: "AWS", instance: "c7g.medium"},
	{tree: "graviton3-without-dmi", core: "Neoverse V1", product: "Graviton3"},
	{tree: "aws-c8g.large", core: "Neoverse V2", product: "Graviton4", cloud: "AWS", instance: "c8g.large"},
	{tree: "aws-m9g.large", core: "Neoverse V3", product: "Graviton5", cloud: "AWS", instance: "m9g.large"},
	{tree: "aws-newer-than-the-table", product: "AWS Graviton99", cloud: "AWS", instance: "m99g.large"},
	{tree: "oci-a1.flex", core: "Neoverse N1", product: "Ampere Altra or Altra Max", cloud: "OCI", instance: "VM.Standard.A1.Flex"},
	{tree: "azure-dpsv5", core: "Neoverse N1", product: "Ampere Altra", cloud: "Azure", instance: "Standard_D2ps_v5"},
	{tree: "hyper-v", core: "Neoverse N1", product: "Ampere Altra or Altra Max"},
	{tree: "gcp-t2a", core: "Neoverse N1", product: "Ampere Altra or Altra Max", cloud: "GCP"},
	{tree: "gcp-c4a", core: "Neoverse V2", product: "Google Axion", cloud: "GCP"},
	{tree: "neoverse-v2-without-dmi", core: "Neoverse V2", product: "Graviton4 or Google Axion"},
	{tree: "altra-adlink-ava", core: "Neoverse N1", product: "Ampere Altra"},
	{tree: "altra-max-adlink", core: "Neoverse N1", product: "Ampere Altra Max"},
	{tree: "nvidia-grace", core: "Neoverse V2", product: "NVIDIA Grace"},
	{tree: "azure-dpsv6", core: "Neoverse N2", product: "Azure Cobalt 100", cloud: "Azure"},
	{tree: "cobalt-100-host", core: "Neoverse N2", product: "Azure Cobalt 100"},
	{tree: "cobalt-200-host", core: "Neoverse V3", product: "Azure Cobalt 200"},
	{tree: "alibaba-g8y", core: "Neoverse N2", product: "Alibaba Yitian 710", cloud: "Alibaba"},
	{tree: "ampereone", core: "Ampere-1", product: "AmpereOne"},
	{tree: "ampereone-1a", core: "Ampere-1a", product: "AmpereOne 1a"},
	{tree: "apple-parallels", product: "Apple silicon"},
	{tree: "kryo", core: "Kryo 4xx Silver"},
	{tree: "kunpeng-d02-vm", core: "HIP09", product: "Kunpeng 920 7270Z"},
	{tree: "kunpeng-d03-vm", core: "Kunpeng 920", product: "Kunpeng 920 7282C"},
	{tree: "kunpeng-950", core: "HIP12", product: "Kunpeng 950"},
	{tree: "kunpeng-920", core: "TaiShan v110", product: "Kunpeng 920"},
	{tree: "thunderx2", core: "ThunderX2", product: "Marvell ThunderX2"},
	{tree: "emag", core: "X-Gene", product: "Ampere eMAG"},
	{tree: "ft-2000", core: "FTC663"},
	{tree: "a64fx", core: "A64FX", product: "Fujitsu A64FX"},
	{tree: "apple-m1-asahi", core: "Firestorm (M1)", product: "Apple M1"},
	{tree: "apple-m1-docker-desktop", product: "Apple silicon"},
	{tree: "rk3588", core: "Cortex-A76"},
	{tree: "nvidia-gb10", core: "Cortex-A725"},
	{tree: "raspberry-pi4", core: "Cortex-A72"},
	{tree: "tcg-neoverse-n1-as-c6g.large", core: "Neoverse N1", product: "Graviton2", cloud: "AWS", instance: "c6g.large", emulated: true},
	{tree: "tcg-neoverse-v1", core: "Neoverse V1", emulated: true},
	{tree: "tcg-neoverse-n2", core: "Neoverse N2", emulated: true},
	{tree: "tcg-cortex-a72", core: "Cortex-A72", emulated: true},
	{tree: "tcg-max", core: "QEMU max", emulated: true},
	{tree: "azure-d2ds_v5", core: "Ice Lake", product: "Intel Xeon Platinum 8370C @ 2.80GHz", cloud: "Azure"},
	{tree: "gcp-t2d", core: "Zen 3", product: "AMD EPYC 7B13", cloud: "GCP"},
	{tree: "aws-xen", core: "Broadwell", product: "Intel Xeon E5-2686 v4 @ 2.30GHz", cloud: "AWS"},
	{tree: "x86-bare-metal", core: "Zen 5", product: "AMD EPYC 9755 128-Core"},
	{tree: "x86-tcg", product: "QEMU TCG CPU version 2.5+", emulated: true},
	{tree: "docker-with-quota", core: "Neoverse N1", product: "Ampere Altra or Altra Max"},
	{tree: "kubernetes-v1", core: "Neoverse N1", product: "Ampere Altra or Altra Max"},
	{tree: "systemd-slice-with-quota", core: "Neoverse N1", product: "Ampere Altra or Altra Max"},
	{tree: "damaged"},
}

func TestDetectRecordedMachines(t *testing.T) {
	t.Parallel()
	for _, tt := range machines {
		t.Run(tt.tree, func(t *testing.T) {
			t.Parallel()
			m, evidence := Detect(os.DirFS(tree(tt.tree)), nil)
			for _, f := range []struct{ name, got, want string }{
				{"core", m.CPU.Core, tt.core},
				{"product", m.CPU.Product, tt.product},
				{"cloud", m.Cloud, tt.cloud},
				{"instance", m.Instance, tt.instance},
			} {
				if f.got != f.want {
					t.Errorf("%s is %q, want %q", f.name, f.got, f.want)
				}
			}
			if m.Emulated != tt.emulated {
				t.Errorf("emulated is %t, want %t", m.Emulated, tt.emulated)
			}
			golden(t, filepath.Join("testdata", "machines", tt.tree+".golden.json"), struct {
				Machine  Machine    `json:"machine"`
				Evidence []Evidence `json:"evidence"`
			}{m, evidence})
		})
	}
}

// golden compares v as JSON with a file.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "\t")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

// Each recorded machine has to be tested, and each product recorded.
func TestEveryMachineAndProductIsTested(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.Join("testdata", "machines"))
	if err != nil {
		t.Fatal(err)
	}
	var named string
	for _, m := range machines {
		named += m.product + "\n"
	}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() {
			name = strings.TrimSuffix(name, ".golden.json")
		}
		if !slices.ContainsFunc(machines, func(m struct {
			tree, core, product, cloud, instance string
			emulated                             bool
		}) bool {
			return m.tree == name
		}) {
			t.Errorf("no test for %s", e.Name())
		}
	}
	for _, p := range products {
		if !strings.Contains(named, p.name) {
			t.Errorf("no recorded machine for %s", p.name)
		}
	}
}

// What identifies one machine of many must not come out, whatever the tree
// holds.
func TestNoSerialsOrInstanceIDs(t *testing.T) {
	t.Parallel()
	for _, tt := range machines {
		m, evidence := Detect(os.DirFS(tree(tt.tree)), nil)
		b, err := json.Marshal([]any{m, evidence})
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"i-0123456789abcdef0", "ec2aaaaa", "SERIAL", "ocid1", "ignored"} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s: %q is in the result", tt.tree, secret)
			}
		}
	}
}

func TestEveryConclusionHasEvidence(t *testing.T) {
	t.Parallel()
	for _, tt := range machines {
		_, evidence := Detect(os.DirFS(tree(tt.tree)), nil)
		var fields []string
		for _, e := range evidence {
			if e.Why == "" {
				t.Errorf("%s: no reason for %s", tt.tree, e.Field)
			}
			fields = append(fields, e.Field)
		}
		for _, want := range []string{
			"arch", "cloud", "instance", "cpu.core", "cpu.product", "cpu.features", "cpu.caches",
			"cpu.frequency.claimed_mhz", "cpu.frequency.measured_mhz", "kernel", "os", "page_size", "cores",
			"cpus_allowed", "quota_cores", "threads_per_core", "numa_nodes", "memory_bytes", "hypervisor",
			"container", "emulated", "mitigations",
		} {
			if !slices.Contains(fields, want) {
				t.Errorf("%s: no evidence for %s", tt.tree, want)
			}
		}
	}
}
