"""Pages of an account: sign in, sign out, change the password, make and revoke tokens."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from playground.accounts import api, guesses, tokens
from playground.accounts.owner import visitor
from playground.accounts.scopes import ADMIN, READ, SUBMIT


class SignInForm(AuthenticationForm):
    """Django's, with a limit on guesses."""

    def clean(self) -> dict[str, Any]:
        if self.errors:  # a field is empty: no attempt yet
            return self.cleaned_data
        name = self.cleaned_data["username"]
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        if not guesses.allowed(name, address):
            self.too_many = True
            raise forms.ValidationError(
                _("Too many attempts. Wait a quarter of an hour, then try again.")
            )
        found = super().clean()
        guesses.succeeded(name, address)
        return found


@method_decorator(login_not_required, name="dispatch")
class SignIn(auth.LoginView):
    template_name = "accounts/sign-in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_invalid(form)
        answer.status_code = 429 if getattr(form, "too_many", False) else 422
        return answer


@login_not_required
def to_administration(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """In place of the administration's own sign-in, which would know no limit on guesses."""
    if request.user.is_authenticated:
        raise PermissionDenied  # signed in, and not of the staff
    return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index"))


class ChangePassword(auth.PasswordChangeView):
    template_name = "accounts/password.html"
    success_url = "/accounts/tokens"


class TokenForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=80)
    scope = forms.ChoiceField(
        label=_("It may"),
        choices=[
            (SUBMIT, _("read and submit")),
            (READ, _("only read")),
            (ADMIN, _("everything you may")),
        ],
    )
    days = forms.TypedChoiceField(
        label=_("Valid for"),
        coerce=int,
        choices=[(30, _("30 days")), (90, _("90 days")), (365, _("a year")), (0, _("ever"))],
        initial=90,
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens_page(request: HttpRequest) -> HttpResponse:
    actor = visitor(request)
    form = TokenForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        asked = form.cleaned_data
        for problem in api.problems_of(actor, asked["name"], [asked["scope"]]):
            form.add_error(None, problem.text.get(get_language() or "en"))
        if form.is_valid():
            _token, secret = tokens.make(
                owner_id=actor.user_id,
                name=asked["name"].strip(),
                scopes=[asked["scope"]],
                expires_at=api.expiry(asked["days"]),
            )
            form = TokenForm()
    context = {"form": form, "secret": secret, "tokens": tokens.of(actor.user_id)}
    status = 422 if form.errors else 200
    return render(request, "accounts/tokens.html", context, status=status)


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    tokens.revoke(owner_id=visitor(request).user_id, token_id=token_id)
    return redirect("tokens")
