"""The tables in data/: what they must hold, written here a second time, from the sources."""
import csv
import tomllib

import pytest

from cxdbench._data import data_path
from cxdbench.device import Device, Nand, fitted_constants, names, source

# id: t_R, t_PROG, t_BERS in us; None where the source gives none. Ranges are (low, high).
PROFILES = {
    "znand-cxdvirt": (3, 100, 1000),
    "ull-mqsimcxl": (3, 100, 1000),
    "ull-skybyte": (3, 80, 1000),
    "ull2-skybyte": (4, 75, 853),
    "slc-skybyte": (25, 200, 1500),
    "mlc-skybyte": (50, 600, 3000),
    "slc-hp": (25, (200, 300), (1500, 2000)),
    "mlc-hp": (50, (600, 900), 3000),
    "tlc-hp": (75, (900, 1350), 4500),
    "tlc-48L": (45, 660, None),
    "tlc-64L": (60, 700, None),
    "tlc-9xL": (50, 500, None),
    "mlc-970pro": ([29.76, 41.76], 185, 0),
    "tlc-zn540": (50, 561, 0),
    "tlc-znsproto": (25.485, 1913.64, 0),
    "femu-default": (40, 200, 2000),
    "slc-femu": (40, 800, 2000),
    "mlc-l95b": ([48, 64], [850, 2300], 3000),
    "tlc-femu": ([56.5, 77.5, 106], [820.5, 2225, 5734], 3000),
    "qlc-femu": ([59.3, 85.25, 127.2, 169.6], [861.5, 2447.5, 6880.8, 9174.4], 3000),
    "mlc-simplessd": ([65, 110], [1250, 3000], 5000),
    "mlc-mqsim": (75, 750, 3800),
}
# id: channels, dies a channel, us to move 4 KiB (from the bandwidth in MiB/s or 10^6 B/s, or as stated)
ARRAYS = {
    "znand-cxdvirt": (8, 16, 6.2 - 3),
    "ull-mqsimcxl": (8, 8, 4096 / 1200),
    "ull-skybyte": (16, 1, 0), "ull2-skybyte": (16, 1, 0),
    "slc-skybyte": (16, 1, 0), "mlc-skybyte": (16, 1, 0),
    "mlc-970pro": (8, 2, 4096e6 / (800 << 20)),
    "tlc-zn540": (8, 4, 4096e6 / (450 << 20)),
    "tlc-znsproto": (8, 16, 4096e6 / (800 << 20)),
    "femu-default": (8, 8, 0),
    "slc-femu": (None, None, 20), "mlc-l95b": (None, None, 52.433), "tlc-femu": (None, None, 52.433),
    "qlc-femu": (None, None, 52.433),
    "mlc-simplessd": (8, 4, None),
    "mlc-mqsim": (8, 8, 4096 / 333),
}
FIELDS = ("read_us", "program_us", "erase_us", "channels", "ways", "transfer_us", "pages_per_block")


def table(file):
    return tomllib.loads(data_path(file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", table("nand.toml"))
def test_a_profile_loads_and_says_where_each_number_is_from(name):
    entry, nand = table("nand.toml")[name], Nand.named(name)
    assert len(source("nand.toml", name)) > 20
    assert set(entry) <= {*Nand.model_fields, "source", "note", "assumed"}
    assert set(entry["assumed"]) <= set(FIELDS) and all(entry["assumed"].values())
    # what the file leaves to Nand's default is marked as assumed, and nothing else may be left to it
    assert {field for field in FIELDS if field not in entry} <= set(entry["assumed"])
    assert (nand.channel_model == "none") == (nand.transfer_us == 0)


@pytest.mark.parametrize("name, times", PROFILES.items())
def test_times_are_those_of_the_source(name, times):
    nand, assumed = Nand.named(name), table("nand.toml")[name]["assumed"]
    for field, want in zip(("read_us", "program_us", "erase_us"), times, strict=True):
        got = getattr(nand, field)
        assert (field in assumed) == (want is None), field
        if isinstance(want, tuple):
            assert got == sum(want) / 2, field
        elif isinstance(want, list):
            assert list(got) == pytest.approx(want, abs=0.05) and list(got) == sorted(got)
        elif want is not None:
            assert got == want, field


@pytest.mark.parametrize("name, array", ARRAYS.items())
def test_arrays_and_channels_are_those_of_the_source(name, array):
    nand, assumed = Nand.named(name), table("nand.toml")[name]["assumed"]
    for field, want in zip(("channels", "ways", "transfer_us"), array, strict=True):
        assert (field in assumed) == (want is None), field
        if want is not None:
            assert getattr(nand, field) == pytest.approx(want, abs=0.005), field


def test_no_profile_is_missing_and_what_came_later_is_known():
    assert set(names("nand.toml")) - set(PROFILES) == {"qlc-femu-measured"}
    assert Nand.named("qlc-femu-measured").read_us == (47.9, 76.2, 134.6, 228.1)


# Devices

def test_presets_are_the_papers_device():
    for name in ("cxdvirt", "cylon", "ideal"):
        device = Device.named(name)
        assert device.capacity_pages == 96 * 2**30 // 4096
        assert device.cache_pages == round(4.8 * 2**30 / 4096)
        nand = device.nand
        assert (nand.read_us, nand.program_us, nand.erase_us) == (3, 100, 1000)
        assert (nand.channels, nand.ways) == (8, 16)
        assert len(source("devices.toml", name)) > 20
        assert Device.from_json(device.model_dump_json()) == device
        assert device.scaled(16_384).cache_pages == 16_384


def test_configured_latency_is_the_papers_and_cylon_charges_no_channel():
    configured = [Device.named(name).configured_ns() for name in ("cxdvirt", "ideal", "cylon")]
    assert configured == [6200, 6200, 3000]


def test_semantics_differ_as_the_systems_do():
    semantics = {name: Device.named(name).semantics for name in names("devices.toml")}
    assert semantics["ideal"] == Device().semantics
    assert (semantics["cxdvirt"].unwritten_read, semantics["cxdvirt"].writeback) == ("free", "charged")
    assert (semantics["cylon"].unwritten_read, semantics["cylon"].writeback) == ("program", "free")
    assert semantics["cylon"].prefetch_timing == "free"
    for name, sees, hit_ns in (("cxdvirt", "faults", 139), ("cylon", "faults", 158), ("ideal", "all", 139)):
        device = Device.named(name)
        assert (device.semantics.policy_sees, device.hit_ns, device.fault_path.kind) == (sees, hit_ns, name)


def test_cylons_path_gives_the_printed_overhead():
    """Fig. 6: 5.3 to 8.5 us over 6.2 us up to P99; Cylon itself charges but t_R = 3 us."""
    device = Device.named("cylon")
    path = device.fault_path
    fixed = path.exit_us + device.nand.read_us - 6.2
    assert fixed + path.rest_us[0] == pytest.approx(5.3, abs=0.05)
    assert fixed + path.rest_us[2] == pytest.approx(8.5, abs=0.06)


@pytest.mark.parametrize("name", table("devices.toml"))
def test_every_key_is_a_field_and_every_fitted_name_exists(name):
    entry, device = table("devices.toml")[name], Device.named(name)
    assert set(entry) <= {*Device.model_fields, "source", "note", "fitted"}
    for dotted, why in entry.get("fitted", {}).items():
        group, field = dotted.split(".")
        assert field in type(getattr(device, group)).model_fields and "Fig." in why
        assert dotted in fitted_constants(device) or group == "prefetch"


def test_the_path_of_a_real_device_has_no_fitted_constant():
    assert not [name for name in fitted_constants(Device.named("ideal")) if name.startswith("fault_path")]


# Published figures

def published():
    return list(csv.DictReader(data_path("published.csv").read_text(encoding="utf-8").splitlines()))


def test_published_rows_are_bands_or_predicates():
    rows = published()
    assert len(rows) == len({row["id"] for row in rows}) > 70
    for row in rows:
        assert row["answered_by"] in ("model", "live", "kmod", "arithmetic", "none yet"), row["id"]
        assert row["why_band"], row["id"]
        assert bool(row["low"] or row["high"]) == bool(row["band_low"] or row["band_high"]), row["id"]
        assert row["predicate"] or row["band_low"] or row["band_high"], row["id"]
        for printed, band, side in ((row["low"], row["band_low"], -1), (row["high"], row["band_high"], 1)):
            if printed:
                assert side * (float(band) - float(printed)) >= 0, row["id"]


def test_published_settings_are_the_presets():
    rows = {row["id"]: row for row in published()}
    device = Device.named("cxdvirt")
    nand = device.nand
    ours = {"cfg.tr": nand.read_us, "cfg.tprog": nand.program_us, "cfg.tbers": nand.erase_us,
            "cfg.channels": nand.channels, "cfg.ways": nand.ways,
            "cfg.miss": device.configured_ns() / 1000, "cfg.capacity": device.capacity_pages * 4096 / 2**30,
            "cfg.cache": round(device.cache_pages * 4096 / 2**30, 4)}
    for row, value in ours.items():
        assert float(rows[row]["band_low"]) <= value <= float(rows[row]["band_high"]), row
        assert rows[row]["answered_by"] == "arithmetic"
