import json
import math
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from tests.cases import each

from tuckermix._records import Record, StopReason
from tuckermix.persistence import (
    LETTER_BYTES,
    VALUE_BYTES,
    Decoder,
    Encoder,
    StoredRecord,
    bounded_json,
)


@dataclass(frozen=True)
class Note(Record):
    cost: float
    rows: np.ndarray


def there_and_back(value):
    encoder = Encoder("Model")
    text = json.dumps(encoder.encode(value, "value_"), allow_nan=False)
    return Decoder(encoder.arrays).decode(json.loads(text))


@each(
    "value",
    [
        None,
        True,
        3,
        -2.5,
        "text",
        1e-308,
        2**80,
        [],
        (),
        {},
        [1, [2, (3, "x")]],
        (None, (1.5,)),
        {"a": {"tuple": [1]}, "array": 3},
        StopReason.STALLED,
        float("inf"),
        -float("inf"),
        [{"float": "nan"}],
    ],
)
def test_plain_values(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_numbers_of_numpy_become_plain():
    for value in (np.float32(0.5), np.int64(3), np.bool_(True)):
        back = there_and_back(value)
        assert back == value
        assert type(back) in (float, int, bool)
    assert math.isnan(there_and_back(np.float64("nan")))


@each("dtype", ["f4", "f8", "i8", "u1", "?", ">f8"])
def test_arrays(dtype):
    value = np.asfortranarray(np.arange(6).reshape(2, 3)).astype(dtype)
    back = there_and_back([value, (value,)])
    assert np.array_equal(back[0], value)
    assert back[0].dtype == value.dtype
    assert back[1][0] is back[0]  # shared before, shared after


def test_arrays_of_other_libraries():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    back = there_and_back(torch.arange(3.0, requires_grad=True))
    assert isinstance(back, np.ndarray)
    assert back.tolist() == [0, 1, 2]
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    assert there_and_back(da.arange(4, chunks=2)).tolist() == [0, 1, 2, 3]


def test_names_of_columns():
    back = there_and_back(np.array(["a", "bc"], dtype=object))
    assert back.dtype == object
    assert back.tolist() == ["a", "bc"]


def test_records():
    back = there_and_back([Note(1.5, np.arange(2))])[0]
    assert back.cost == back["cost"] == 1.5
    assert back.rows.tolist() == [0, 1]
    assert list(back) == back.keys() == ["cost", "rows"]
    assert back.to_dict()["cost"] == 1.5
    assert "cost" in back
    assert repr(there_and_back(StoredRecord(a=1))) == "StoredRecord(a=1)"
    assert there_and_back(StoredRecord(a=1)) == StoredRecord(a=1)
    with pytest.raises(AttributeError, match="This record has no field 'x', but cost, rows"):
        _ = back.x


def test_sources_of_randomness_are_left_out():
    encoder = Encoder("Model")
    for value in (np.random.default_rng(0), np.random.RandomState(0), np.random.SeedSequence(0)):
        assert encoder.parameter("random_state", value) is None
    assert encoder.parameter("random_state", 7) == 7


def test_refused_values():
    with pytest.raises(TypeError, match=r"Model\.value_ holds a function, which cannot be stored"):
        there_and_back(there_and_back)
    with pytest.raises(TypeError, match=r"Model\.value_\.a holds a set, which cannot be stored"):
        there_and_back({"a": {1}})
    with pytest.raises(TypeError, match="holds a dict, which cannot be stored"):
        there_and_back({1: 2})
    with pytest.raises(TypeError, match=r"Model\.value_ is an array of object, which cannot be"):
        there_and_back(np.array([1, "a"], dtype=object))
    with pytest.raises(TypeError, match="is an array of complex128, which cannot be stored"):
        there_and_back(np.array([1j]))


def test_refused_descriptions():
    decoder = Decoder({})
    for strange in ({"pickle": "x"}, {}, {"array": "a", "more": 1}, {"float": "7"}, {"tuple": 3}):
        with pytest.raises(ValueError, match=r"a value with the keys .* is unknown"):
            decoder.decode(strange)
    with pytest.raises(KeyError):
        decoder.decode({"array": "none"})
    deep = []
    for _ in range(60):
        deep = [deep]
    with pytest.raises(ValueError, match="values are nested more than 50 deep"):
        decoder.decode(deep)


@each(
    "value", [{}, [], 0, "a", {"a": [1, 2.5, None, True, 'x\\"y[{,', {"b": "\u20ac"}]}, ["[" * 500]]
)
def test_bounded_json_reads_what_json_does(value):
    assert bounded_json(json.dumps(value).encode(), 10**6) == value
    assert bounded_json(json.dumps(value, ensure_ascii=False).encode(), 10**6) == value


@each(
    "content, message",
    [
        (b"[" * 201 + b"]" * 201, "it is nested 201 deep, more than 200"),
        (b'{"a":' * 201, "it is nested 201 deep, more than 200"),
        (
            b"[" + b"0," * 10_000 + b"0]",
            r"it takes up to \d+ bytes .*limit is 1000000",
        ),
        (b'"' + b'\\"' * 100_000, "it takes up to"),
        (b"[NaN]", "JSON has no NaN"),
        (b"[1", "Expecting"),
        (b'["\\', "Unterminated|Invalid"),
        (b"\x80", "codec"),
    ],
)
def test_bounded_json_refuses(content, message):
    with pytest.raises(ValueError, match=message):
        bounded_json(content, 10**6)


def test_a_header_of_too_many_values(monkeypatch):
    monkeypatch.setattr("tuckermix.persistence.MAX_VALUES", 10)
    with pytest.raises(ValueError, match="it holds 12 values, more than 10"):
        bounded_json(b"[0,0,0,0,0,0,0,0,0,0,0]", 10**6)


def test_memory_of_parsed_values_is_within_what_is_counted():
    # The dearest values for their length; the parser itself holds the text once more.
    for item in ('"%d":{}', '"%d":[]', '"%d":1.5', '"€%d":"€"'):
        content = ("{" + ",".join(item % number for number in range(20_000)) + "}").encode()
        needed = VALUE_BYTES * 20_001 + LETTER_BYTES * len(content)
        tracemalloc.start()
        value = bounded_json(content, 10**9)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(value) == 20_000
        assert peak < needed + 2 * len(content)
