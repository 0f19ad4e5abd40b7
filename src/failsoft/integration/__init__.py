"""The one door for adapters: run a framework's own tools under failsoft, and answer calls that were interrupted.

``api`` exports names from inside failsoft, ``framework_tool`` declares tools that a framework owns and exports what runs them, ``arguments`` reads arguments that a
model wrote, ``streams`` and ``executor`` run tools that stream or block, ``unanswered`` closes calls without an answer.
May import ``runtime`` and everything below it. Tested in
``tests/integration``; every adapter passes ``failsoft.testing.check_adapter``.
"""
