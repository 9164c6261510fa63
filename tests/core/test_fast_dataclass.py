"""Our frozen classes do what `dataclasses.dataclass(frozen=True)` makes of the same class."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field

import pytest

from jupyter_gpucluster.core.fast_dataclass import frozen


@frozen
class Ours:
    """A point."""

    x: int
    y: float = 0.5
    tags: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Theirs:
    """A point."""

    x: int
    y: float = 0.5
    tags: tuple[str, ...] = field(default_factory=tuple)


@pytest.mark.parametrize("values", [(1,), (1, 2.0), (1, 2.0, ("a",))])
def test_values_are_taken_by_place(values: tuple[object, ...]) -> None:
    ours, theirs = Ours(*values), Theirs(*values)  # type: ignore[arg-type]
    assert vars(ours) == vars(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert hash(ours) == hash(theirs)


def test_values_are_taken_by_name() -> None:
    assert vars(Ours(x=1, tags=("b",))) == vars(Theirs(x=1, tags=("b",)))


@pytest.mark.parametrize("kind", [Ours, Theirs])
@pytest.mark.parametrize(
    "values, named",
    [((), {}), ((1, 2.0, (), 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((), {"y": 1.0})],
)
def test_what_does_not_fit_is_refused(
    kind: type, values: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(TypeError):
        kind(*values, **named)


def test_nothing_can_be_changed() -> None:
    for point in (Ours(1), Theirs(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            point.x = 2  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError):
            del point.y
        assert point.x == 1


def test_equal_are_those_of_one_class_with_the_same_values() -> None:
    assert Ours(1, 2.0) == Ours(1, 2.0)
    assert Ours(1) != Ours(2)
    twin: object = Theirs(1)
    assert Ours(1) != twin
    assert len({Ours(1), Ours(1), Ours(2)}) == 2


def test_the_module_dataclasses_knows_them() -> None:
    kind: object = Ours
    assert dataclasses.is_dataclass(kind)
    assert [f.name for f in dataclasses.fields(Ours)] == ["x", "y", "tags"]
    assert dataclasses.replace(Ours(1), y=3.0) == Ours(1, 3.0)
    assert dataclasses.asdict(Ours(1)) == dataclasses.asdict(Theirs(1))
    match Ours(1, 2.0):
        case Ours(x, y):
            assert (x, y) == (1, 2.0)


def test_copies_and_pickles_are_equal() -> None:
    assert copy.deepcopy(Ours(1)) == copy.copy(Ours(1)) == pickle.loads(pickle.dumps(Ours(1)))  # noqa: S301
