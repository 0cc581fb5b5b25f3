"""scikit-learn's callbacks where the installed version has them, nothing where it has not."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in for scikit-learn's class of the same name."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitProgress", "with_callbacks"]


class FitProgress:
    """Tell an estimator's callbacks of the sweeps of a fit.

    Parameters
    ----------
    estimator : object
        The estimator, derived from `CallbackSupportMixin`.
    X : array
        The samples, which callbacks may look at.
    """

    def __init__(self, estimator: Any, X: Any):
        self._estimator, self._X = estimator, X
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            # How many sweeps there will be is not known: several random starts may each take some.
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X)

    def sweep(self, number: int) -> bool:
        """Report the end of a sweep; return whether a callback asks to stop."""
        if self._context is None:
            return False
        task = self._context.subcontext(task_name=f"sweep {number}")
        task.call_on_fit_task_begin(estimator=self._estimator, X=self._X)
        return bool(task.call_on_fit_task_end(estimator=self._estimator, X=self._X))

    def end(self) -> None:
        """Report the end of the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X)
