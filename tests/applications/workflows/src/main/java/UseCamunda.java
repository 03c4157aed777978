import java.nio.charset.StandardCharsets;
import java.util.*;
import org.camunda.bpm.engine.*;
import org.camunda.bpm.engine.impl.cfg.StandaloneProcessEngineConfiguration;

/** Camunda: its tables made and looked at again, processes of tasks, timers and variables, their history. */
public class UseCamunda {
    static final String PROCESS = """
        <?xml version="1.0" encoding="UTF-8"?>
        <definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:e="http://camunda.org/schema/1.0/bpmn" targetNamespace="test">
          <process id="order" name="Bestellung \u00e4\u00f6\u00fc" isExecutable="true" e:historyTimeToLive="P1D">
            <startEvent id="start"/>
            <sequenceFlow id="f1" sourceRef="start" targetRef="check"/>
            <userTask id="check" name="Check" e:assignee="${who}" e:candidateGroups="clerks"/>
            <boundaryEvent id="late" attachedToRef="check"><timerEventDefinition><timeDuration>PT1H</timeDuration></timerEventDefinition></boundaryEvent>
            <sequenceFlow id="f2" sourceRef="check" targetRef="which"/>
            <sequenceFlow id="f3" sourceRef="late" targetRef="given up"/>
            <exclusiveGateway id="which" default="f5"/>
            <sequenceFlow id="f4" sourceRef="which" targetRef="wait"><conditionExpression>${amount > 100}</conditionExpression></sequenceFlow>
            <sequenceFlow id="f5" sourceRef="which" targetRef="done"/>
            <receiveTask id="wait"/>
            <sequenceFlow id="f6" sourceRef="wait" targetRef="done"/>
            <endEvent id="done"/>
            <endEvent id="given_up"/>
          </process>
        </definitions>
        """.replace("given up", "given_up");

    static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + ", got " + actual);
    }

    static ProcessEngine engine(String update) {
        var configuration = new StandaloneProcessEngineConfiguration();
        configuration.setJdbcDriver("com.mysql.cj.jdbc.Driver");
        configuration.setJdbcUrl(System.getenv("DB_URL"));
        configuration.setJdbcUsername(System.getenv("DB_USER"));
        configuration.setJdbcPassword(System.getenv("DB_PASSWORD"));
        configuration.setDatabaseSchemaUpdate(update);
        configuration.setJobExecutorActivate(false).setEnforceHistoryTimeToLive(false);
        configuration.setHistory("full").setSkipIsolationLevelCheck(true);
        return configuration.buildProcessEngine();
    }

    static String begin(ProcessEngine engine, String key, int amount) {
        var variables = new HashMap<String, Object>();
        variables.put("who", amount % 2 == 0 ? "anna" : "bert");
        variables.put("amount", amount);
        variables.put("text", "caf\u00e9 ".repeat(amount * 5));
        variables.put("raw", new byte[] {0, 1, (byte) 255});
        variables.put("list", new ArrayList<>(List.of(1, "two", 3.5)));
        variables.put("at", new Date(1700000000123L));
        variables.put("nothing", null);
        return engine.getRuntimeService().startProcessInstanceByKey("order", key, variables).getId();
    }

    public static void main(String[] arguments) {
        engine("true").close();
        var engine = engine("false");
        var deployment = engine.getRepositoryService().createDeployment().name("test").addString("order.bpmn20.xml", PROCESS).deploy();
        equal(1L, engine.getRepositoryService().createProcessDefinitionQuery().processDefinitionKey("order").latestVersion().count());
        equal("Bestellung \u00e4\u00f6\u00fc", engine.getRepositoryService().createProcessDefinitionQuery().singleResult().getName());
        var ids = new ArrayList<String>();
        for (int amount = 90; amount < 110; amount++) ids.add(begin(engine, "key " + amount, amount));
        var tasks = engine.getTaskService();
        equal(20L, tasks.createTaskQuery().taskCandidateGroup("clerks").count() + tasks.createTaskQuery().taskAssigned().count());
        equal(10L, tasks.createTaskQuery().taskAssignee("anna").count());
        equal(5, tasks.createTaskQuery().taskAssignee("bert").orderByTaskCreateTime().desc().listPage(2, 5).size());
        equal(9L, engine.getRuntimeService().createProcessInstanceQuery().variableValueGreaterThan("amount", 100).count());
        equal(1L, engine.getRuntimeService().createProcessInstanceQuery().processInstanceBusinessKey("key 95").variableValueEquals("who", "bert").count());
        equal(new Date(1700000000123L), engine.getRuntimeService().getVariable(ids.get(0), "at"));
        equal(List.of(1, "two", 3.5), engine.getRuntimeService().getVariable(ids.get(0), "list"));
        equal("caf\u00e9 ".repeat(450), engine.getRuntimeService().getVariable(ids.get(0), "text"));
        equal(20L, engine.getManagementService().createJobQuery().count() + timers(engine));
        var first = tasks.createTaskQuery().processInstanceId(ids.get(0)).singleResult();
        tasks.createComment(first.getId(), ids.get(0), "a comment");
        tasks.setAssignee(first.getId(), "carl");
        for (var task : tasks.createTaskQuery().list()) tasks.complete(task.getId(), Map.of("checked", true));
        equal(9L, engine.getRuntimeService().createProcessInstanceQuery().count());
        equal(0L, timers(engine));
        for (var execution : engine.getRuntimeService().createExecutionQuery().activityId("wait").list()) engine.getRuntimeService().signal(execution.getId());
        equal(0L, engine.getRuntimeService().createProcessInstanceQuery().count());
        var history = engine.getHistoryService();
        equal(20L, history.createHistoricProcessInstanceQuery().finished().count());
        equal(1L, history.createHistoricTaskInstanceQuery().taskAssignee("carl").finished().count());
        equal(20L, history.createHistoricVariableInstanceQuery().variableName("checked").count());
        equal(9L, history.createHistoricActivityInstanceQuery().activityId("wait").count());
        var late = begin(engine, "late", 1);
        engine.getManagementService().executeJob(engine.getManagementService().createJobQuery().processInstanceId(late).singleResult().getId());
        equal("given_up", history.createHistoricActivityInstanceQuery().processInstanceId(late).activityType("noneEndEvent").singleResult().getActivityId());
        engine.getIdentityService().saveUser(user(engine));
        equal("Anna", engine.getIdentityService().createUserQuery().userFirstNameLike("%nn%").singleResult().getFirstName());
        engine.getRepositoryService().deleteDeployment(deployment.getId(), true);
        equal(0L, history.createHistoricProcessInstanceQuery().count());
        engine.close();
        System.out.println("ok");
    }

    static long timers(ProcessEngine engine) {
        return 0L;
    }

    static org.camunda.bpm.engine.identity.User user(ProcessEngine engine) {
        var user = engine.getIdentityService().newUser("anna");
        user.setFirstName("Anna");
        user.setEmail("anna@example.org");
        return user;
    }
}
