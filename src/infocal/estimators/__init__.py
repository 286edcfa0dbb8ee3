"""The scikit-learn face: a classifier and a regressor of texts that show the words they used."""

from infocal.errors import MissingExtraError

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise MissingExtraError("scikit-learn", "sklearn", "a scikit-learn estimator") from error

from infocal.estimators.classifier import RationaleClassifier
from infocal.estimators.regressor import RationaleRegressor

__all__ = ["RationaleClassifier", "RationaleRegressor"]
