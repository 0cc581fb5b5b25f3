"""scikit-learn's callbacks where the installed version has them, stand-ins elsewhere."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class _Silence:
        """Stand in for scikit-learn's context of a task: nobody listens, nobody asks to stop."""

        def subcontext(self, **options: Any) -> _Silence:
            return self

        def call_on_fit_task_begin(self, **options: Any) -> None:
            pass

        def call_on_fit_task_end(self, **options: Any) -> bool:
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in for scikit-learn's class of the same name."""

        def _init_callback_context(self, **options: Any) -> _Silence:
            return _Silence()

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method
