import build.buf.protovalidate.ValidatorFactory;
import build.buf.validate.FieldPathElement;
import build.buf.validate.Violations;
import chartroom.service.v1.CreateProjectRequest;
import chartroom.service.v1.CreateWorkflowRequest;
import chartroom.service.v1.EnvironmentInitializer;
import chartroom.service.v1.ErrorDetail;
import chartroom.service.v1.EventServiceGrpc;
import chartroom.service.v1.GetProjectRequest;
import chartroom.service.v1.GitInitializer;
import chartroom.service.v1.ListProjectsRequest;
import chartroom.service.v1.PaginationRequest;
import chartroom.service.v1.Project;
import chartroom.service.v1.ProjectServiceGrpc;
import chartroom.service.v1.Sort;
import chartroom.service.v1.WatchEventsRequest;
import chartroom.service.v1.WatchEventsResponse;
import chartroom.service.v1.WorkflowAction;
import chartroom.service.v1.WorkflowServiceGrpc;
import chartroom.service.v1.WorkflowStep;
import com.google.gson.Gson;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import java.net.URI;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Runs one scenario against a server with grpc-java: {@code GrpcClient ADDRESS SCENARIO}. Prints one
 * JSON object; the token is in the environment variable TOKEN.
 */
public final class GrpcClient {
  private final ProjectServiceGrpc.ProjectServiceBlockingStub projects;
  private final WorkflowServiceGrpc.WorkflowServiceBlockingStub workflows;
  private final EventServiceGrpc.EventServiceBlockingStub events;

  /** Sends compressed requests, each with the token and a deadline of a minute. */
  private GrpcClient(ManagedChannel channel) {
    Metadata headers = new Metadata();
    headers.put(
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER),
        "Bearer " + System.getenv("TOKEN"));
    var authorize = MetadataUtils.newAttachHeadersInterceptor(headers);
    projects =
        ProjectServiceGrpc.newBlockingStub(channel)
            .withInterceptors(authorize)
            .withCompression("gzip")
            .withWaitForReady()
            .withDeadlineAfter(1, TimeUnit.MINUTES);
    workflows =
        WorkflowServiceGrpc.newBlockingStub(channel)
            .withInterceptors(authorize)
            .withCompression("gzip")
            .withDeadlineAfter(1, TimeUnit.MINUTES);
    events =
        EventServiceGrpc.newBlockingStub(channel)
            .withInterceptors(authorize)
            .withDeadlineAfter(1, TimeUnit.MINUTES);
  }

  public static void main(String[] args) throws Exception {
    URI address = URI.create(args[0]);
    ManagedChannel channel =
        ManagedChannelBuilder.forAddress(address.getHost(), address.getPort()).usePlaintext().build();
    GrpcClient client = new GrpcClient(channel);
    Object result =
        switch (args[1]) {
          case "create" -> Map.of("name", client.create("created").getMetadata().getName());
          case "list" -> client.list();
          case "error" -> client.refused();
          case "rules" -> rules();
          case "stream" -> client.stream();
          case "deadline" -> client.deadline();
          case "compression" -> client.compression();
          case "unknown" -> client.unknown();
          default -> throw new IllegalArgumentException("no scenario " + args[1]);
        };
    System.out.println(new Gson().toJson(result));
    channel.shutdownNow();
  }

  private Project create(String name) {
    var git = GitInitializer.newBuilder().setRemoteUri("https://git.example.org/team/" + name + ".git");
    var spec = EnvironmentInitializer.Spec.newBuilder().setGit(git);
    var initializer = EnvironmentInitializer.newBuilder().addSpecs(spec);
    return projects
        .createProject(CreateProjectRequest.newBuilder().setInitializer(initializer).build())
        .getProject();
  }

  /** Walks five projects in pages of two. */
  private Object list() {
    for (int number = 0; number < 5; number++) create("listed-" + number);
    List<List<String>> pages = new ArrayList<>();
    String token = "";
    do {
      var answer =
          projects.listProjects(
              ListProjectsRequest.newBuilder()
                  .setFilter(ListProjectsRequest.Filter.newBuilder().setSearch("listed-"))
                  .setSort(Sort.newBuilder().setField("id"))
                  .setPagination(PaginationRequest.newBuilder().setPageSize(2).setToken(token))
                  .build());
      pages.add(answer.getProjectsList().stream().map(it -> it.getMetadata().getName()).toList());
      token = answer.getPagination().getNextToken();
    } while (!token.isEmpty());
    return Map.of("pages", pages);
  }

  /** Reads the code, the reason and the violations from the status of an error. */
  private Object refused() throws Exception {
    try {
      projects.getProject(GetProjectRequest.newBuilder().setProjectId("x").build());
    } catch (StatusRuntimeException error) {
      Map<String, Object> failure = new LinkedHashMap<>();
      failure.put("code", error.getStatus().getCode().name());
      for (var detail : StatusProto.fromThrowable(error).getDetailsList()) {
        if (detail.is(ErrorDetail.class))
          failure.put("reason", detail.unpack(ErrorDetail.class).getReason().name());
        if (detail.is(Violations.class))
          failure.put("violations", broken(detail.unpack(Violations.class)));
      }
      return failure;
    }
    throw new IllegalStateException("the server took a bad id");
  }

  /** Checks a request before it is sent. */
  private static Object rules() throws Exception {
    var request = GetProjectRequest.newBuilder().setProjectId("x").build();
    var result = ValidatorFactory.newBuilder().build().validate(request);
    return Map.of("violations", broken(result.toProto()));
  }

  private static Object broken(Violations violations) {
    return violations.getViolationsList().stream()
        .map(
            it -> {
              var names = it.getField().getElementsList().stream().map(FieldPathElement::getFieldName);
              return Map.of("field", String.join(".", names.toList()), "rule", it.getRuleId());
            })
        .toList();
  }

  /** Watches until the connection is cut, and resumes after the last event that it has. */
  private Object stream() {
    String first = create("first").getId();
    List<Map<String, Object>> seen = new ArrayList<>();
    var opened = events.watchEvents(WatchEventsRequest.newBuilder().setAfterSequence(0).build());
    readUntil(opened, first, seen);
    System.out.println("watching");
    String cut;
    try {
      while (true) record(opened.next(), seen);
    } catch (StatusRuntimeException error) {
      cut = error.getStatus().getCode().name();
    }
    String second = create("second").getId();
    long position = (long) seen.get(seen.size() - 1).get("sequence");
    readUntil(
        events.watchEvents(WatchEventsRequest.newBuilder().setAfterSequence(position).build()),
        second,
        seen);
    return Map.of("cut", cut, "events", seen, "projects", List.of(first, second));
  }

  private static void readUntil(
      Iterator<WatchEventsResponse> stream, String resourceId, List<Map<String, Object>> seen) {
    while (!record(stream.next(), seen).equals(resourceId)) {}
  }

  private static String record(WatchEventsResponse event, List<Map<String, Object>> seen) {
    seen.add(Map.of("sequence", event.getSequence(), "resourceId", event.getResourceId()));
    return event.getResourceId();
  }

  /** Waits for events of the future for a moment only. */
  private Object deadline() {
    var impatient = events.withDeadlineAfter(500, TimeUnit.MILLISECONDS);
    try {
      var stream = impatient.watchEvents(WatchEventsRequest.getDefaultInstance());
      while (true) stream.next();
    } catch (StatusRuntimeException error) {
      return Map.of("code", error.getStatus().getCode().name());
    }
  }

  /** Sends and receives a workflow of 100,000 equal characters. */
  private Object compression() {
    var action =
        WorkflowAction.newBuilder()
            .setLimits(WorkflowAction.Limits.newBuilder().setMaxParallel(1).setMaxTotal(1));
    for (int step = 0; step < 5; step++) {
      var task = WorkflowStep.Task.newBuilder().setCommand("a".repeat(20_000));
      action.addSteps(WorkflowStep.newBuilder().setTask(task));
    }
    var answer =
        workflows.createWorkflow(
            CreateWorkflowRequest.newBuilder().setName("Compressed").setAction(action).build());
    int characters = 0;
    for (var step : answer.getWorkflow().getSpec().getAction().getStepsList())
      characters += step.getTask().getCommand().length();
    return Map.of("characters", characters);
  }

  /** Reads an answer with a field that this client's contract does not have. */
  private Object unknown() {
    var metadata = create("older").getMetadata();
    boolean isThere = !metadata.getUnknownFields().asMap().isEmpty();
    return Map.of("name", metadata.getName(), "unknownFields", isThere);
  }
}
