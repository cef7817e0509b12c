"""The shapes of what the REST API answers, as the OpenAPI page shows them. The views make plain
dictionaries; the fuzz test holds these shapes against every answer."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

State = Literal[
    "queued", "starting", "running", "paused", "succeeded", "failed", "canceled", "aborted"
]
STATES = get_args(State)
When = str  # RFC 3339, UTC


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Fault(Shape):
    pointer: str = Field(description="Which part of the request, as a JSON Pointer.")
    detail: str
    nearest: Any = Field(None, description="The nearest value or values that would do.")


class Problem(Shape):
    """RFC 9457, application/problem+json: every error."""

    type: str = Field(examples=["/problems/invalid_params"])
    title: str
    status: int
    detail: str = Field(description="For people, in the reader's language.")
    instance: str
    code: str = Field(description="For programs.")
    errors: list[Fault]
    request_id: str


class Urls(Shape):
    self: str
    events: str
    control: str
    artifacts: str
    page: str


class Progress(BaseModel):
    done: float
    total: float | None
    eta_s: float | None


class Job(Shape):
    id: str = Field(examples=["01m8qa988yrt842eah4b"])
    kind: str
    params: dict[str, Any]
    state: State
    attempt: int
    queue: Literal["interactive", "training"]
    place: int | None
    progress: Progress | None
    result: dict[str, Any] | None
    reason: str | None
    message: str | None
    cancel_requested: bool
    owner: int
    group: int | None = Field(alias="class")
    device: str | None
    created_at: When
    start_at: When | None
    cancel_at: When | None
    started_at: When | None
    ended_at: When | None
    urls: Urls


class Page(Shape):
    next: str | None = Field(description="Of the next page, null when there is none.")
    prev: str | None


class Jobs(Page):
    items: list[Job]


class Event(Shape):
    id: str = Field(examples=["1-42"])
    job: str
    type: str
    t: float = Field(description="Unix seconds.")
    data: dict[str, Any]


class Events(Page):
    items: list[Event]


class Artifact(Shape):
    name: str
    type: str
    size: int
    sha256: str
    attempt: int
    url: str


class Artifacts(Page):
    items: list[Artifact]


class Kind(Shape):
    name: str
    title: dict[str, str]
    summary: dict[str, str]
    queue: str
    controls: list[str]
    settable: list[str]
    refs: dict[str, list[str]]
    deadline_s: int
    params: dict[str, Any] = Field(description="JSON Schema of the params.")
    events: dict[str, Any]
    frames: dict[str, Any]
    result: dict[str, Any]


class Kinds(Page):
    items: list[Kind]


class Waiting(Shape):
    id: str
    place: int | None
    estimate_s: float | None


class Queue(Shape):
    name: str
    slots: int
    busy: int
    waiting: int
    mine: list[Waiting]


class Queues(Shape):
    queues: list[Queue]


class Resource(Shape):
    resource: str
    used: int
    limit: int | None
    reset: int | None = Field(description="Seconds until all of it is free again.")


class Quota(Page):
    items: list[Resource]


class Self(Shape):
    self: str


class Upload(Shape):
    id: str
    name: str
    bytes: int
    sha256: str
    form: Literal["text", "vectors"]
    encoding: str | None
    about: dict[str, Any]
    created_at: When
    urls: Self


class Uploads(Page):
    items: list[Upload]


class Token(Shape):
    id: int
    name: str
    prefix: str
    scopes: list[str]
    created_at: When
    expires_at: When | None
    used_at: When | None


class Tokens(Page):
    items: list[Token]


class NewToken(Token):
    token: str = Field(description="The secret. Nothing shows it again.")
