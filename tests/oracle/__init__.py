"""The oracle: a slow second implementation of cxdbench/model/README.md, written from that page alone.

`simulate(device, workload, inputs)` answers what the page says a run does, event for event, with plain dicts,
lists and generators and nothing shared with the model but the settings and the address tables.
"""

from .machine import Machine, OracleResult
from .phases import run_phases

__all__ = ["OracleResult", "simulate"]


def simulate(device, workload, inputs) -> OracleResult:
    """The run of `workload` on `device`, its addresses from `inputs` (cxdbench.model.inputs)."""
    machine = Machine(device, workload, inputs)
    run_phases(machine, workload, inputs)
    return machine.result()
