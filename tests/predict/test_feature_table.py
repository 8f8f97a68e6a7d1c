"""Tables of features: their schema says whether a model can read them."""

import numpy as np
import pytest

from recrawl.errors import InputError
from recrawl.predict.static_features import (
    Feature,
    FeatureGroup,
    FeatureTable,
    beside,
    schema_of,
    stacked,
    table_of,
)

SIZE = Feature("size", FeatureGroup.SP)
MIME = Feature("mime", FeatureGroup.SP, categorical=True)
RANK = Feature("rank", FeatureGroup.SN)


@pytest.fixture
def table():
    return table_of(np.array([2, 5, 9]), 100.0, [(SIZE, [1, 2, 3]), (MIME, [7, np.nan, 7]), (RANK, [0.1, 0.2, 0.7])])


def test_columns_are_found_by_name_and_group(table):
    assert table.names == ("size", "mime", "rank")
    assert table.column("size").tolist() == [1, 2, 3]
    assert table.of_groups({FeatureGroup.SP}).names == ("size", "mime")
    assert table.only({"rank", "size"}).names == ("size", "rank")
    with pytest.raises(KeyError, match="colour"):
        table.only({"colour"})


def test_rows_are_taken_with_their_pages(table):
    some = table.take(np.array([True, False, True]))
    assert some.page.tolist() == [2, 9]
    assert some.column("rank").tolist() == table.column("rank")[[0, 2]].tolist()
    assert some.schema == table.schema


@pytest.mark.parametrize(
    "other",
    [
        [SIZE, RANK, MIME],
        [SIZE, MIME],
        [Feature("size", FeatureGroup.DP), MIME, RANK],
        [SIZE, Feature("mime", FeatureGroup.SP), RANK],
    ],
)
def test_every_difference_of_columns_is_another_schema(table, other):
    assert schema_of(other) != table.schema
    with pytest.raises(InputError, match=r"trained on other features.*Train it again"):
        table.fitting(schema_of(other))


def test_a_model_of_the_same_schema_fits(table):
    again = FeatureTable(np.array([1]), table.columns, np.zeros((1, 3), np.float32), 5.0)
    assert again.fitting(table.schema) is again


def test_schemas_do_not_depend_on_the_run():
    assert schema_of([SIZE, MIME]) == "82e1564f5b6b"


def test_tables_are_joined_only_if_they_are_of_the_same_pages_and_time(table):
    more = table_of(table.page, 100.0, [(Feature("links", FeatureGroup.SP), [0, 0, 1])])
    assert beside([table, more]).names == (*table.names, "links")
    with pytest.raises(ValueError, match="another time"):
        beside([table, FeatureTable(more.page, more.columns, more.values, 101.0)])
    with pytest.raises(ValueError, match="same name"):
        beside([table, table])


def test_values_must_fit():
    with pytest.raises(ValueError, match="do not fit"):
        FeatureTable(np.array([1, 2]), (SIZE,), np.zeros((3, 1), np.float32), 0.0)


def test_tables_of_several_times_are_stacked(table):
    later = FeatureTable(table.page[:2], table.columns, table.values[:2], 200.0)
    whole = stacked([table, later])
    assert whole.page.tolist() == [2, 5, 9, 2, 5]
    assert whole.as_of == 200.0
    assert whole.column("size").tolist() == [1, 2, 3, 1, 2]
    with pytest.raises(InputError, match="other features"):
        stacked([table, later.only({"size"})])
